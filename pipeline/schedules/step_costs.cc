#include "pipeline/schedules/step_costs.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::pipeline {
namespace {

bool IsTime(double value) { return value >= 0; }

absl::Status CheckReductions(const StepTable& table, int rank,
                             const std::vector<int>& stages,
                             const StepCosts& costs) {
  const std::vector<int> buckets = table.bucket_counts();
  for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) {
    const std::vector<double>& reductions =
        costs.stages[stages[chunk]].reductions;
    if (reductions.empty()) continue;
    const std::size_t count = chunk < buckets.size() ? buckets[chunk] : 0;
    if (reductions.size() != count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule: costs of ", reductions.size(), " reductions of stage ",
          stages[chunk], " where the table of pp ", rank, " has ", count,
          " buckets"));
    }
    if (!std::all_of(reductions.begin(), reductions.end(), IsTime)) {
      return absl::InvalidArgumentError(
          "schedule: a StepCosts has a reduction that must take at least 0");
    }
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
