// Runs a dataflow in one thread and virtual time, under a seed that chooses
// which stage goes on, how long messages take and, with several processes, how
// long every frame between them does: the stages of production, over simulated
// links.
//
//   for (std::uint64_t seed = 0; seed < 1000; ++seed) {
//     DataflowSimulation options;
//     options.seed = seed;
//     options.processes = 2;
//     const auto reports = SimulateDataflow(MyFlow(), options);  // by process
//     if (!reports[0].ok()) return reports[0].status();
//   }
//
// All seeds give each stage the same tensors in the same order. Time stands
// still while anything can run, so a dataflow that stands still fails at once,
// with kDeadlineExceeded.
//
// Threads: one, the caller's; functions of stages run there. They are not left
// in the middle: the seed chooses between handlers and at what they send.

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
  // As in DataflowOptions; virtual.
  absl::Duration timeout = absl::Minutes(5);
  // This process is lost after so many frames between processes; -1: none is.
  int lost_process = -1;
  std::uint64_t lost_after_frames = 0;
  // After so many events a simulation gives up.
  std::int64_t events_max = 10'000'000;
};

// What each process reports, by its number. Errors as RunDataflow();
// kAborted where there is no end.
std::vector<absl::StatusOr<DataflowReport>> SimulateDataflow(
    const Dataflow& flow, const DataflowSimulation& options);

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_SIMULATE_DATAFLOW_H_
