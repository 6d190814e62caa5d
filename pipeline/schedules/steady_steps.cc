#include "pipeline/schedules/steady_steps.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace troupe::pipeline {
namespace {

// Returns the time of each rank's updates.
std::vector<double> UpdatesOf(const Placement& placement,
                              const StepCosts& costs, std::size_t ranks) {
  std::vector<double> updates(ranks, 0);
  for (std::size_t stage = 0; stage < placement.size(); ++stage) {
    updates[placement[stage].pp] += costs.stages[stage].update;
  }
  return updates;
}

// Returns the number of buckets of each rank whose reductions take time.
std::vector<int> BucketsOf(const Placement& placement, const StepCosts& costs,
                           std::size_t ranks) {
  std::vector<int> buckets(ranks, 0);
  for (std::size_t stage = 0; stage < placement.size(); ++stage) {
    buckets[placement[stage].pp] +=
        static_cast<int>(costs.stages[stage].reductions.size());
  }
  return buckets;
}

// Returns the time at which each rank has computed, reduced and updated. An
// update of a bucket follows its reduction, so the last one alone follows them
// all, unless updates go together.
std::vector<double> EndsOf(const SimulatedStep& step,
                           const std::vector<double>& updates,
                           const std::vector<int>& buckets,
                           bool updates_together) {
  double all = step.seconds;
  for (const SimulatedRank& rank : step.ranks) {
    all = std::max(all, rank.reduced);
  }
  std::vector<double> ends;
  for (std::size_t r = 0; r < step.ranks.size(); ++r) {
    const SimulatedRank& rank = step.ranks[r];
    if (updates_together) {
      ends.push_back(all + updates[r]);
      continue;
    }
    double end =
        (rank.actions.empty() ? step.seconds : rank.actions.back().end) +
        updates[r];
    if (buckets[r] > 0) {
      end = std::max(end, rank.reduced + updates[r] / buckets[r]);
    }
    ends.push_back(end);
  }
  return ends;
}

bool LooksAtAllGradients(const StepTable& table) {
  return std::any_of(table.actions.begin(), table.actions.end(),
                     [](const Action& action) {
                       return action.kind == ActionKind::kReduceFindings;
                     });
}

}  // namespace

absl::StatusOr<SteadyStep> SimulateSteps(const std::vector<StepTable>& tables,
                                         const Placement& placement,
                                         const StepCosts& costs,
                                         Dispatch dispatch) {
  const bool together =
      std::any_of(tables.begin(), tables.end(), LooksAtAllGradients);
  SteadyStep steady;
  std::vector<double> updates;
  std::vector<double> begins(tables.size(), 0);
  // The lead of each rank over the others is constant after a few steps.
  constexpr int kStepsMax = 6;
  for (int i = 0; i < kStepsMax; ++i) {
    TROUPE_ASSIGN_OR_RETURN(
        steady.step, SimulateStep(tables, placement, costs, dispatch, begins));
    updates = UpdatesOf(placement, costs, tables.size());
    std::vector<double> ends =
        EndsOf(steady.step, updates, BucketsOf(placement, costs, tables.size()),
               together);
    const double first = *std::min_element(ends.begin(), ends.end());
    double longest = 0;
    for (std::size_t r = 0; r < ends.size(); ++r) {
      longest = std::max(longest, ends[r] - begins[r]);
    }
    for (double& end : ends) end -= first;
    steady.seconds = longest;
    const bool is_settled = ends == begins;
    begins = std::move(ends);
    if (is_settled) break;
  }
  double busy = 0;
  for (std::size_t r = 0; r < tables.size(); ++r) {
    busy += steady.step.ranks[r].busy + updates[r];
  }
  if (steady.seconds > 0) {
    steady.bubble =
        1 - busy / (steady.seconds * static_cast<double>(tables.size()));
  }
  return steady;
}

}  // namespace troupe::pipeline
