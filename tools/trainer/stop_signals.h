// Ctrl-C, twice: the first SIGINT or SIGTERM asks, the second ends the process
// at once with exit code 130.
//
//   TROUPE_ASSIGN_OR_RETURN(auto signals, StopSignals::Start([&] {
//     job->RequestStop();
//   }));
//
// The function runs in a thread of its own, once. One object at a time: what a
// signal handler may reach is global to the process.

#ifndef TOOLS_TRAINER_STOP_SIGNALS_H_
#define TOOLS_TRAINER_STOP_SIGNALS_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"

namespace troupe::tools {

class StopSignals {
 public:
  //   kResourceExhausted: the system refuses the thread or its pipe.
  static absl::StatusOr<std::unique_ptr<StopSignals>> Start(
      std::function<void()> on_first);
  // Gives the signals back to the system. `on_first` is not running any more.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  StopSignals(int read_end, int write_end, std::thread thread);

  const int read_end_, write_end_;
  std::thread thread_;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_STOP_SIGNALS_H_
