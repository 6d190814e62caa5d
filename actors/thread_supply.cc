#include "actors/thread_supply.h"

#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace troupe::actors {
namespace {

constexpr int kStrandsOfRank = 3;  // loader, compute, comm
constexpr int kStrandsOfJob = 3;   // supervisor, checkpointer, reporter
constexpr int kThreadsOfCaf = 3;   // worker, clock, printer

}  // namespace

int JobThreads(int ranks) {
  return kStrandsOfRank * ranks + kStrandsOfJob + kThreadsOfCaf;
}

absl::Status CheckThreadSupply(int ranks) {
  return CheckThreadSupply(ranks, [](std::function<void()> run) {
    return std::thread(std::move(run));
  });
}

absl::Status CheckThreadSupply(int ranks, const ThreadStarter& start) {
  const int needed = JobThreads(ranks);
  absl::Status status;
  absl::Notification all_there;
  std::vector<std::thread> threads;
  threads.reserve(needed);
  try {
    for (int i = 0; i < needed; ++i) {
      threads.push_back(start([&] { all_there.WaitForNotification(); }));
    }
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(absl::StrCat(
        "the system refuses thread ", threads.size() + 1, " of the ", needed,
        " of a job of ", ranks,
        ranks == 1 ? " rank: " : " ranks: ", error.code().message(),
        "; raise its limit (ulimit -u, or the pids limit of the container), or "
        "use fewer ranks"));
  }
  all_there.Notify();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace troupe::actors
