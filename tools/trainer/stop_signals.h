// Ctrl-C, twice: the first SIGINT or SIGTERM asks, the second ends the process
// at once with exit code 130.
//
//   StopSignals signals([&] { job->RequestStop(); });
//
// The function runs in a thread of its own, once. One object at a time: what a
// signal handler may reach is global to the process.

#ifndef TOOLS_TRAINER_STOP_SIGNALS_H_
#define TOOLS_TRAINER_STOP_SIGNALS_H_

#include <functional>
#include <thread>

namespace troupe::tools {

class StopSignals {
 public:
  explicit StopSignals(std::function<void()> on_first);
  // Gives the signals back to the system. `on_first` is not running any more.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  int pipe_[2];
  std::thread thread_;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_STOP_SIGNALS_H_
