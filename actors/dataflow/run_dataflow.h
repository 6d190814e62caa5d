// Runs a dataflow: in threads of this process, or as one of several processes
// that run the same description.
//
//   Dataflow flow = MyFlow();
//   absl::StatusOr<DataflowReport> report = RunDataflow(flow);
//
//   DataflowOptions options;                      // in several processes
//   options.cluster = cluster;                    // which of them this one is
//   report = RunDataflow(flow, options);
//
// In several processes each calls RunDataflow() with its own number; stages run
// in the process that InProcess() says, and tensors between two of them go
// through shared memory on a host, by TCP between hosts. Which tensors a stage
// sees, and in which order, does not depend on where stages are.
//
// Returns when all stages are done, or the first has failed. Errors:
//
//     kInvalidArgument     the description (Dataflow::Check), named
//     kResourceExhausted   the system refuses the threads
//     kDeadlineExceeded    no handler returned for the time-out; says what each
//                          stage waits for
//     kFailedPrecondition  processes have different descriptions; shows a line
//     kUnavailable         a process is lost; names it
//     others               those of a stage's function, with stage, channel and
//                          number in front
//
// All processes return the failure that was heard of first, as a rule: where
// two stages of different processes fail at one time, each returns its own.
//
// Threads: blocks the calling one. A stage that never returns from a function
// holds it up.

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
  // None: all stages live in this process, whatever InProcess() says of
  // process 0 alone. ClusterOptions::ranks and warn have no meaning here.
  std::optional<ClusterOptions> cluster;
  // A run in which no handler returns for so long has failed.
  absl::Duration timeout = absl::Minutes(5);
};

absl::StatusOr<DataflowReport> RunDataflow(const Dataflow& flow,
                                           const DataflowOptions& options = {});

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_RUN_DATAFLOW_H_
