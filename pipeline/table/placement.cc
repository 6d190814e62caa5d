#include "pipeline/table/placement.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace troupe::pipeline {

Placement LoopedPlacement(int pp, int chunks) {
  Placement placement;
  for (int stage = 0; stage < pp * chunks; ++stage) {
    placement.push_back({stage % pp, stage / pp});
  }
  return placement;
}

Placement VPlacement(int pp) {
  Placement placement;
  for (int stage = 0; stage < 2 * pp; ++stage) {
    const bool down = stage < pp;
    placement.push_back({down ? stage : 2 * pp - 1 - stage, down ? 0 : 1});
  }
  return placement;
}

absl::Status CheckPlacement(const Placement& placement, int pp) {
  std::vector<int> chunks(pp);
  for (std::size_t stage = 0; stage < placement.size(); ++stage) {
    const StagePlace& place = placement[stage];
    if (place.pp < 0 || place.pp >= pp) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement: stage ", stage, " must lie at pp 0 to ",
                       pp - 1, ", not ", place.pp));
    }
    if (place.chunk != chunks[place.pp]++) {
      return absl::InvalidArgumentError(absl::StrCat(
          "placement: stage ", stage, " is chunk ", place.chunk, " of pp ",
          place.pp, " where chunk ", chunks[place.pp] - 1, " is next"));
    }
  }
  for (int at = 0; at < pp; ++at) {
    if (chunks[at] > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("placement: pp ", at,
                     " has no stage; give it one, "
                     "or lower pp"));
  }
  return absl::OkStatus();
}

std::vector<int> StagesAt(const Placement& placement, int pp) {
  std::vector<int> stages;
  for (std::size_t stage = 0; stage < placement.size(); ++stage) {
    if (placement[stage].pp == pp) stages.push_back(static_cast<int>(stage));
  }
  return stages;
}

std::vector<ChunkEnds> EndsAt(const Placement& placement, int pp) {
  const int last = static_cast<int>(placement.size()) - 1;
  std::vector<ChunkEnds> ends;
  for (int stage : StagesAt(placement, pp)) {
    ends.push_back({stage == 0, stage == last});
  }
  return ends;
}

}  // namespace troupe::pipeline
