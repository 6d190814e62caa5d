// Times the training steps of a job whose ranks are spread over processes of
// this machine.
//
//   ProcessJob job;
//   job.make = [] { return MakeTrainJob("mlp_25m", /*ranks=*/2); };
//   job.processes = 2;
//   job.transport = actors::Transport::kTcp;
//   absl::StatusOr<double> rate = StepsPerSecondInProcesses(job, 1.0);
//
// All processes are forked from this one, and have ended when the call returns.
// Call it while the program has no other threads.

#ifndef TOOLS_BENCH_PROCESS_JOB_H_
#define TOOLS_BENCH_PROCESS_JOB_H_

#include <functional>

#include "absl/status/statusor.h"
#include "actors/job.h"

namespace troupe::bench {

struct ProcessJob {
  // Makes the job, in each process.
  std::function<absl::StatusOr<actors::JobSpec>()> make;
  int processes = 1;
  actors::Transport transport = actors::Transport::kAuto;
};

//   kInternal: a process failed; its error is on standard error.
absl::StatusOr<double> StepsPerSecondInProcesses(const ProcessJob& job,
                                                 double seconds);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_PROCESS_JOB_H_
