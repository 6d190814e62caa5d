#include "base/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace troupe::base {

void ParallelFor(int threads, std::int64_t count,
                 absl::FunctionRef<void(std::int64_t)> piece) {
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t i; (i = next.fetch_add(1)) < count;) piece(i);
  };
  std::vector<std::thread> others;
  const std::int64_t helpers = std::min<std::int64_t>(threads, count) - 1;
  others.reserve(static_cast<std::size_t>(std::max<std::int64_t>(helpers, 0)));
  try {
    while (static_cast<std::int64_t>(others.size()) < helpers) {
      others.emplace_back(work);
    }
  } catch (const std::system_error&) {
    // No more threads: the existing ones process all pieces.
  }
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace troupe::base
