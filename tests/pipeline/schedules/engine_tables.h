// The tables of a schedule as the engine runs them
// (actors/engine/step_runner.h), on all ranks of a mesh, with a bucket a chunk.
//
//   const EngineTables job(Mesh(/*dp=*/1, /*pp=*/2), LoopedPlacement(2, 1),
//                          *OneForwardOneBackward(2, 4), Dispatch::kArrival);
//   EXPECT_EQ(job.TryAllOrders().error, "");

#ifndef TESTS_PIPELINE_SCHEDULES_ENGINE_TABLES_H_
#define TESTS_PIPELINE_SCHEDULES_ENGINE_TABLES_H_

#include <utility>
#include <vector>

#include "pipeline/mesh.h"
#include "pipeline/table/activation_bound.h"
#include "pipeline/table/compute_order.h"
#include "pipeline/table/placement.h"
#include "pipeline/table/schedule.h"
#include "tests/pipeline/all_orders.h"

namespace troupe::pipeline {

struct EngineTables {
  // `computes`: compute actions alone, indexed by coordinate along pp.
  EngineTables(const Mesh& on, Placement placed,
               const std::vector<StepTable>& computes, Dispatch dispatch)
      : mesh(on), placement(std::move(placed)) {
    for (int rank = 0; rank < mesh.size(); ++rank) {
      const int pp = mesh.CoordOf(rank, kPpAxis);
      const StepTable& compute = computes[pp];
      bounds.push_back(MostActivations(compute));
      tables.push_back(
          AddReductions(AddTransfers(compute, EndsAt(placement, pp)),
                        std::vector<int>(compute.chunks(), 1), {}));
      if (dispatch == Dispatch::kStrict) {
        KeepComputeOrder(tables.back());
      } else {
        BoundActivations(tables.back());
      }
    }
  }

  AllOrders TryAllOrders() const {
    return pipeline::TryAllOrders(mesh, tables, placement, bounds);
  }

  Mesh mesh;
  Placement placement;
  std::vector<StepTable> tables;  // indexed by rank
  std::vector<int> bounds;        // limits on the activations of each rank
};

}  // namespace troupe::pipeline

#endif  // TESTS_PIPELINE_SCHEDULES_ENGINE_TABLES_H_
