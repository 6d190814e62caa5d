// Runs a dataflow, in threads of this process or as one of several processes
// that run the same description.
//
//   Dataflow flow = MyFlow();
//   absl::StatusOr<DataflowReport> report = RunDataflow(flow);
//
//   DataflowOptions options;                      // in several processes
//   options.cluster = cluster;                    // with this one's number
//   report = RunDataflow(flow, options);
//
// Each of several processes calls RunDataflow() with its own number. Stages run
// in the process set by InProcess(). Tensors between processes travel through
// shared memory within a host, by TCP between hosts. Each stage gets the same
// tensors in the same order, wherever the stages are.
//
// Returns when all stages are done, or the first has failed. Errors:
//
//     kInvalidArgument     the description is wrong (Dataflow::Check)
//     kResourceExhausted   the system refuses the threads
//     kDeadlineExceeded    no handler returned for the time-out; says what each
//                          stage waits for
//     kFailedPrecondition  processes have different descriptions; shows a line
//     kUnavailable         a process is lost; names it
//     others               those of a stage's function, with stage, channel and
//                          number in front
//
// As a rule all processes return the same failure, the first one. If stages of
// two processes fail at the same time, each process returns its own.
//
// Threads: blocks the calling thread, also while a function of a stage does not
// return.

#ifndef ACTORS_DATAFLOW_RUN_DATAFLOW_H_
#define ACTORS_DATAFLOW_RUN_DATAFLOW_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/dataflow/dataflow.h"
#include "actors/dataflow/dataflow_report.h"
#include "actors/spec/cluster_options.h"

namespace troupe::actors {

struct DataflowOptions {
  // None: this process runs all stages, which must all be InProcess(0).
  // ClusterOptions::ranks and warn have no meaning here.
  std::optional<ClusterOptions> cluster;
  // Time after which the run fails if no handler returns.
  absl::Duration timeout = absl::Minutes(5);
};

absl::StatusOr<DataflowReport> RunDataflow(const Dataflow& flow,
                                           const DataflowOptions& options = {});

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_RUN_DATAFLOW_H_
