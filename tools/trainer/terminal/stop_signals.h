// The signals that ask a run to stop: SIGINT (Ctrl-C), SIGTERM, SIGUSR1 and
// SIGUSR2 (warnings of a batch system before its time limit: Slurm's --signal,
// `qsub -notify` of Grid Engine), SIGXCPU (a soft limit on CPU time), SIGHUP (a
// closed terminal) and SIGPIPE (the output has no reader).
//
//   TROUPE_ASSIGN_OR_RETURN(auto signals, StopSignals::Start([&](int signal) {
//     job->RequestStop();
//   }));
//
// The function runs once, in its own thread, with the first signal. After that
// a SIGINT ends the process at once (kExitAtOnce), and the other signals have
// no effect, since they are often sent twice: `timeout` signals its child and
// the child's group, and both shell and kernel report a closed terminal. For
// the same reason a SIGINT within kTogetherMs of the first signal has no
// effect. SIGKILL always works.
//
// A SIGHUP that was ignored before (nohup) stays ignored. Only one object may
// exist at a time, since the state of signal handlers is global to the process.

#ifndef TOOLS_TRAINER_TERMINAL_STOP_SIGNALS_H_
#define TOOLS_TRAINER_TERMINAL_STOP_SIGNALS_H_

#include <signal.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"

namespace troupe::tools {

// Milliseconds of some steady clock.
std::int64_t SteadyMilliseconds();

class StopSignals {
 public:
  // Milliseconds after the first signal in which a SIGINT counts as the same
  // one. A user cannot press Ctrl-C, read the answer and press it again within
  // them.
  static constexpr std::int64_t kTogetherMs = 200;

  // `clock_ms` is called in signal handlers.
  //   kResourceExhausted: the system refuses the thread or its pipe.
  static absl::StatusOr<std::unique_ptr<StopSignals>> Start(
      std::function<void(int signal)> on_first,
      std::int64_t (*clock_ms)() = SteadyMilliseconds);
  // Handles the signals as before Start(). `on_first` is not running any more.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT,  SIGTERM, SIGUSR1, SIGUSR2,
                                          SIGXCPU, SIGHUP,  SIGPIPE};

  StopSignals(int read_end, int write_end, std::thread thread);

  const int read_end_, write_end_;
  std::thread thread_;
  std::array<struct sigaction, kSignals.size()>
      before_;  // one for each of kSignals
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_STOP_SIGNALS_H_
