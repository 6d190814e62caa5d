// Which rank of a pipeline holds which stages of the model: plain data.
//
//   // 8 stages on 4 ranks, 2 chunks each: stage 5 is chunk 1 of pp 1.
//   Placement looped = LoopedPlacement(/*pp=*/4, /*chunks=*/2);
//   StagesAt(looped, /*pp=*/1);        // {1, 5}: its stages, by chunk
//   // In the shape of a V, the last stage lies beside the first.
//   Placement v = VPlacement(/*pp=*/2);  // {{0, 0}, {1, 0}, {1, 1}, {0, 1}}
//
// A rank's chunks are numbered in the order of their stages. The looped
// placement is that of Narayanan et al. 2021, arXiv:2104.04473, sec. 2.2.

#ifndef PIPELINE_PLACEMENT_H_
#define PIPELINE_PLACEMENT_H_

#include <vector>

#include "absl/status/status.h"
#include "pipeline/schedule.h"

namespace troupe::pipeline {

// Where a stage lies: a coordinate along pp, and a chunk of the ranks there.
struct StagePlace {
  int pp = 0;
  int chunk = 0;

  friend bool operator==(const StagePlace& a, const StagePlace& b) {
    return a.pp == b.pp && a.chunk == b.chunk;
  }
};

using Placement = std::vector<StagePlace>;  // by stage

// Stage s of pp * chunks lies at coordinate s % pp, as chunk s / pp.
Placement LoopedPlacement(int pp, int chunks);

// 2 pp stages in the shape of a V: stages s and 2 pp - 1 - s lie beside each
// other (Qi et al. 2024, arXiv:2405.15362).
Placement VPlacement(int pp);

// kInvalidArgument that names the stage: a coordinate that is not there, or
// chunks of a coordinate that are not 0, 1, ... in the order of their stages.
absl::Status CheckPlacement(const Placement& placement, int pp);

// The stages that lie at a coordinate, by chunk.
std::vector<int> StagesAt(const Placement& placement, int pp);
// Which of them are the model's first and last.
std::vector<ChunkEnds> EndsAt(const Placement& placement, int pp);

}  // namespace troupe::pipeline

#endif  // PIPELINE_PLACEMENT_H_
