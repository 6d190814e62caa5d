#include "tools/report/planned_step.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::tools {
namespace {

using pipeline::ActionKind;
using Times = std::vector<double>;

// Times of one stage's actions.
struct StageTimes {
  Times forward, whole, inputs, weights;

  Times* Of(ActionKind kind) {
    switch (kind) {
      case ActionKind::kForward:
        return &forward;
      case ActionKind::kBackward:
        return &whole;
      case ActionKind::kBackwardInputs:
        return &inputs;
      case ActionKind::kBackwardWeights:
        return &weights;
      default:
        return nullptr;
    }
  }
};

double Median(Times times) {
  if (times.empty()) return 0;
  const auto middle = times.begin() + times.size() / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Adds the times of a rank's bars to those of their stages, each without the
// time of the bars nested in it.
void AddTimes(std::vector<const Bar*> bars, const RunShape& shape,
              std::vector<StageTimes>& stages) {
  std::stable_sort(bars.begin(), bars.end(), [](const Bar* a, const Bar* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
  });
  const Bar* outer = nullptr;
  double inner = 0;
  const auto close = [&] {
    if (outer == nullptr || outer->track != BarTrack::kCompute) return;
    Times* const times = stages[shape.StageOf(*outer)].Of(outer->kind);
    if (times == nullptr || outer->is_graph) return;
    times->push_back(std::max(0.0, outer->end - outer->begin - inner));
  };
  double until = 0;  // end of the nested bars so far
  for (const Bar* bar : bars) {
    if (outer != nullptr && bar->begin < outer->end) {
      const double from = std::max(bar->begin, until);
      const double to = std::min(bar->end, outer->end);
      if (to > from) inner += to - from;
      until = std::max(until, to);
      continue;
    }
    close();
    outer = bar;
    inner = 0;
    until = bar->begin;
  }
  close();
}

// Returns the work of one micro-batch over all stages.
double WorkOf(const pipeline::StepCosts& costs) {
  double work = 0;
  for (const pipeline::StageCosts& stage : costs.stages) {
    work += stage.forward + stage.inputs + stage.weights;
  }
  return work;
}

}  // namespace

pipeline::StepCosts MeasuredCosts(const RunTrace& trace,
                                  const RunShape& shape) {
  std::map<int, std::vector<const Bar*>> ranks;
  for (const Bar& bar : trace.bars) {
    const bool on_strand =
        bar.track == BarTrack::kCompute ||
        (bar.track == BarTrack::kComm && shape.ReducesInline(bar.rank));
    if (on_strand) ranks[bar.rank].push_back(&bar);
  }
  std::vector<StageTimes> stages(shape.stages());
  for (auto& [rank, bars] : ranks) AddTimes(std::move(bars), shape, stages);
  pipeline::StepCosts costs;
  for (StageTimes& times : stages) {
    const bool has_backward = !times.whole.empty() ||
                              (!times.inputs.empty() && !times.weights.empty());
    if (times.forward.empty() || !has_backward) return {};
    pipeline::StageCosts stage;
    stage.forward = Median(times.forward);
    const double whole = Median(times.whole);
    stage.inputs = times.inputs.empty() ? whole / 2 : Median(times.inputs);
    stage.weights = times.weights.empty() ? whole / 2 : Median(times.weights);
    costs.stages.push_back(stage);
  }
  return costs;
}

absl::StatusOr<std::vector<PlannedStep>> PlanSteps(
    const pipeline::Plan& plan, const pipeline::StepCosts& estimate,
    const RunTrace& trace, const RunShape& shape) {
  std::vector<pipeline::StepTable> tables;
  for (const pipeline::RankPlan& rank : plan.ranks) {
    tables.push_back(rank.train);
  }
  const auto simulate = [&](const pipeline::StepCosts& costs) {
    return pipeline::SimulateStep(tables, plan.placement(), costs,
                                  plan.dispatch);
  };
  std::vector<PlannedStep> planned;
  const pipeline::StepCosts measured = MeasuredCosts(trace, shape);
  if (!measured.stages.empty()) {
    TROUPE_ASSIGN_OR_RETURN(pipeline::SimulatedStep step, simulate(measured));
    planned.push_back({"as measured", std::move(step)});
  }
  const double work = WorkOf(estimate);
  if (work <= 0) return planned;
  const double scale = measured.stages.empty() ? 1 : WorkOf(measured) / work;
  pipeline::StepCosts scaled = estimate;
  for (pipeline::StageCosts& stage : scaled.stages) {
    stage.forward *= scale;
    stage.inputs *= scale;
    stage.weights *= scale;
  }
  TROUPE_ASSIGN_OR_RETURN(pipeline::SimulatedStep step, simulate(scaled));
  planned.push_back({"by arithmetic", std::move(step)});
  return planned;
}

}  // namespace troupe::tools
