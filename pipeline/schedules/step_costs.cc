#include "pipeline/schedules/step_costs.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::pipeline {
namespace {

bool IsTime(double value) { return value >= 0; }

// The times of one kind of collective for the buckets of a stage.
struct BucketTimes {
  const char* kind;
  int stage;
  const std::vector<double>& times;
};

// `count`: number of the stage's buckets in the table of pp `rank`.
absl::Status CheckBucketTimes(const BucketTimes& of, std::size_t count,
                              int rank) {
  if (of.times.empty()) return absl::OkStatus();
  if (of.times.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: costs of ", of.times.size(), " ", of.kind, "s of stage ",
        of.stage, " where the table of pp ", rank, " has ", count, " buckets"));
  }
  if (!std::all_of(of.times.begin(), of.times.end(), IsTime)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: a StepCosts has a ", of.kind, " that must take at least 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckReductions(const StepTable& table, int rank,
                             const std::vector<int>& stages,
                             const StepCosts& costs) {
  const std::vector<int> buckets = table.bucket_counts();
  for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) {
    const int stage = stages[chunk];
    const StageCosts& of = costs.stages[stage];
    const std::size_t count = chunk < buckets.size() ? buckets[chunk] : 0;
    TROUPE_RETURN_IF_ERROR(
        CheckBucketTimes({"reduction", stage, of.reductions}, count, rank));
    TROUPE_RETURN_IF_ERROR(
        CheckBucketTimes({"gather", stage, of.gathers}, count, rank));
  }
  return absl::OkStatus();
}

}  // namespace

double StageCosts::TimeOf(ActionKind kind) const {
  switch (kind) {
    case ActionKind::kForward:
      return forward;
    case ActionKind::kBackward:
      return backward >= 0 ? backward : inputs + weights;
    case ActionKind::kBackwardInputs:
      return inputs;
    default:
      return weights;
  }
}

double StageCosts::SumsOf(ActionKind kind) const {
  switch (kind) {
    case ActionKind::kForward:
      return forward_sums;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInputs:
      return backward_sums;
    default:
      return 0;
  }
}

absl::Status CheckCosts(const std::vector<StepTable>& tables,
                        const Placement& placement, const StepCosts& costs) {
  const int pp = static_cast<int>(tables.size());
  TROUPE_RETURN_IF_ERROR(CheckPlacement(placement, pp));
  if (costs.stages.size() != placement.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: costs of ", costs.stages.size(),
                     " stages where the placement has ", placement.size()));
  }
  for (const StageCosts& stage : costs.stages) {
    if (IsTime(stage.forward) && IsTime(stage.inputs) &&
        IsTime(stage.weights) && IsTime(stage.update) &&
        IsTime(stage.forward_sums) && IsTime(stage.backward_sums) &&
        IsTime(costs.transfer)) {
      continue;
    }
    return absl::InvalidArgumentError(
        "schedule: a StepCosts has a cost that must be at least 0");
  }
  for (int rank = 0; rank < pp; ++rank) {
    const int chunks = static_cast<int>(StagesAt(placement, rank).size());
    if (tables[rank].chunks() > chunks) {
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule: the table of pp ", rank, " has ", tables[rank].chunks(),
          " chunks where the placement has ", chunks));
    }
    TROUPE_RETURN_IF_ERROR(
        CheckReductions(tables[rank], rank, StagesAt(placement, rank), costs));
  }
  return absl::OkStatus();
}

}  // namespace troupe::pipeline
