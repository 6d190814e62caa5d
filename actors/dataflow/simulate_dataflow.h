// Runs a dataflow in one thread and virtual time. A seed decides which stage
// runs next, how long messages take and, with several processes, how long each
// frame between them takes. Stages and actors are the same as in RunDataflow();
// only the links are simulated.
//
//   for (std::uint64_t seed = 0; seed < 1000; ++seed) {
//     DataflowSimulation options;
//     options.seed = seed;
//     options.processes = 2;
//     const auto reports = SimulateDataflow(MyFlow(), options);  // by process
//     if (!reports[0].ok()) return reports[0].status();
//   }
//
// Each stage gets the same tensors in the same order, whatever the seed is.
// Virtual time advances only when nothing can run, so a dataflow without
// progress fails at once, with kDeadlineExceeded.
//
// Threads: the caller's only; functions of stages run there. Each function runs
// to its end without interruption: the seed decides between handlers, and when
// their messages arrive.

#ifndef ACTORS_DATAFLOW_SIMULATE_DATAFLOW_H_
#define ACTORS_DATAFLOW_SIMULATE_DATAFLOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/dataflow/dataflow.h"
#include "actors/dataflow/dataflow_report.h"

namespace troupe::actors {

struct DataflowSimulation {
  std::uint64_t seed = 0;
  int processes = 1;
  // Time-out of DataflowOptions, in virtual time.
  absl::Duration timeout = absl::Minutes(5);
  // Process to be lost once `lost_after_frames` frames between processes have
  // been delivered; -1: none.
  int lost_process = -1;
  std::uint64_t lost_after_frames = 0;
  // Limit on the number of events, after which the simulation gives up.
  std::int64_t events_max = 10'000'000;
};

// Returns the result of each process, indexed by its number. Errors: the same
// as RunDataflow(); kAborted if the run has not ended within `events_max`.
std::vector<absl::StatusOr<DataflowReport>> SimulateDataflow(
    const Dataflow& flow, const DataflowSimulation& options);

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_SIMULATE_DATAFLOW_H_
