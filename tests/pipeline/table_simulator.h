// Runs the tables of all ranks of a mesh against each other, without actors,
// tensors or time: a seed chooses what happens next, among all that could.
//
//   TableRun run = RunTables(Mesh(/*dp=*/2, /*pp=*/3), tables, /*seed=*/1);
//   run.error;             // "" when every table ran to its end
//   run.in_flight_max[0];  // micro-batches between forward and backward
//
// Possible events: a rank starts the action that its cursor offers; a compute
// action makes a bucket ready, or ends; a message arrives, in any order; a
// collective that all of its group have started ends on one of them. So the
// seeds cover slow ranks, slow links and slow reductions.
//
// Independently of the cursors, the simulator checks that an action's needs
// were met, that a rank computes one action at a time, and that the ranks of a
// group start the same collectives.

#ifndef TESTS_PIPELINE_TABLE_SIMULATOR_H_
#define TESTS_PIPELINE_TABLE_SIMULATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/mesh.h"
#include "pipeline/table/placement.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

struct TableRun {
  // "": complete. Otherwise the error, or the position of each rank.
  std::string error;
  // Per rank: the actions in the order in which they started or arrived.
  std::vector<std::string> started;
  // Per rank: the largest number of micro-batches whose forward had begun and
  // whose backward had not ended.
  std::vector<int> in_flight_max;
};

// `tables`: indexed by rank. `placement`: empty for a stage at each coordinate
// of pp.
TableRun RunTables(const Mesh& mesh, const std::vector<StepTable>& tables,
                   std::uint64_t seed, const Placement& placement = {});

// Bounds the memory of a stage: the forward of micro-batch m also waits until
// the backward of m - n is done; for tables of one chunk. A last pass, since
// others set needs anew.
void LimitInFlight(StepTable& table, int n);

}  // namespace troupe::pipeline

#endif  // TESTS_PIPELINE_TABLE_SIMULATOR_H_
