// Placement of the model's stages on the ranks of a pipeline, as plain data.
//
//   // 8 stages on 4 ranks, 2 chunks each: stage 5 is chunk 1 of pp 1.
//   Placement looped = LoopedPlacement(/*pp=*/4, /*chunks=*/2);
//   StagesAt(looped, /*pp=*/1);        // {1, 5}: its stages, by chunk
//   // In the shape of a V, the last stage lies beside the first.
//   Placement v = VPlacement(/*pp=*/2);  // {{0, 0}, {1, 0}, {1, 1}, {0, 1}}
//
// A rank's chunks are numbered in the order of their stages. The looped
// placement is that of Narayanan et al. 2021, arXiv:2104.04473, sec. 2.2.

#ifndef PIPELINE_TABLE_PLACEMENT_H_
#define PIPELINE_TABLE_PLACEMENT_H_

#include <vector>

#include "absl/status/status.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

// Place of a stage: a coordinate along pp, and a chunk of the ranks there.
struct StagePlace {
  int pp = 0;
  int chunk = 0;

  friend bool operator==(const StagePlace& a, const StagePlace& b) {
    return a.pp == b.pp && a.chunk == b.chunk;
  }
};

using Placement = std::vector<StagePlace>;  // indexed by stage

// Places stage s of pp * chunks at coordinate s % pp, as chunk s / pp.
Placement LoopedPlacement(int pp, int chunks);

// Places 2 pp stages in the shape of a V: stages s and 2 pp - 1 - s lie on one
// rank (Qi et al. 2024, arXiv:2405.15362).
Placement VPlacement(int pp);

// Returns kInvalidArgument if a stage's coordinate is outside [0, pp), if the
// chunks of a coordinate are not 0, 1, ... in stage order, or if a coordinate
// has no stage.
absl::Status CheckPlacement(const Placement& placement, int pp);

// Returns the stages at a coordinate, indexed by chunk.
std::vector<int> StagesAt(const Placement& placement, int pp);
// Returns which of them are the model's first and last stage, by chunk.
std::vector<ChunkEnds> EndsAt(const Placement& placement, int pp);

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_PLACEMENT_H_
