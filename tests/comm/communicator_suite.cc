#include "tests/comm/communicator_suite.h"

#include <algorithm>
#include <thread>

#include "tests/comm/reduction_test_data.h"

namespace troupe::comm {

void CommunicatorSuite::InThreads(
    const Ranks& ranks,
    const std::function<void(Communicator&, int rank)>& body) {
  std::vector<std::thread> threads;
  for (const auto& rank : ranks) {
    threads.emplace_back([&, comm = rank.get()] { body(*comm, comm->rank()); });
  }
  for (std::thread& thread : threads) thread.join();
}

void CommunicatorSuite::Step(const Ranks& ranks, std::uint64_t seed,
                             const std::vector<Event>& events) {
  const auto pending = [](const Event& event) { return !event.ready(); };
  while (std::any_of(events.begin(), events.end(), pending)) {
    ranks[NextBits(&seed) % ranks.size()]->Progress();
  }
}

nn::Tensor CommunicatorSuite::Floats(float first, int rank,
                                     std::int64_t count) {
  const nn::Tensor range =
      nn::Tensor::Empty({count}, nn::DType::kF32, allocator_);
  for (float& x : range.span<float>()) x = first + static_cast<float>(rank);
  return range;
}

}  // namespace troupe::comm
