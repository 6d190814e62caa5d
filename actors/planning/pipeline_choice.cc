#include "actors/planning/pipeline_choice.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "pipeline/partition.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {
namespace {

// Returns the tables of the plan's schedule: their compute actions alone.
pipeline::Tables ComputeTablesOf(const pipeline::Plan& plan) {
  pipeline::Tables tables;
  for (const pipeline::RankPlan& rank : plan.ranks) {
    pipeline::StepTable& table = tables.emplace_back();
    for (const pipeline::Action& action : rank.train.actions) {
      if (!pipeline::IsCompute(action.kind)) continue;
      table.actions.push_back({action.kind, action.index, {}, action.chunk});
    }
    table = pipeline::WithNeeds(std::move(table), {});
  }
  return tables;
}

// Takes the cuts, and the schedule if it is open, from the plan of an earlier
// run. Returns whether they fit this one.
absl::StatusOr<bool> Adopt(const pipeline::Plan& plan, JobSpec& spec) {
  pipeline::PlanOptions& options = spec.plan;
  const bool chooses_schedule = spec.open_pipeline->chooses_schedule;
  const pipeline::Placement placement =
      options.placement.empty()
          ? pipeline::LoopedPlacement(options.mesh.pp(), options.virtual_stages)
          : options.placement;
  const bool fits = chooses_schedule
                        ? plan.mesh.pp() == options.mesh.pp() &&
                              plan.micro_batches == options.MicroBatches()
                        : plan.placement() == placement;
  const std::vector<pipeline::Cut> cuts(plan.cuts.begin(), plan.cuts.end());
  if (!fits || !pipeline::ResolveCuts(spec.model, cuts).ok()) return false;
  options.cuts = cuts;
  if (chooses_schedule) {
    options.placement = plan.placement();
    TROUPE_RETURN_IF_ERROR(pipeline::SetTables(ComputeTablesOf(plan), options));
  }
  return true;
}

void Tell(const JobSpec& spec) {
  if (spec.note == nullptr) return;
  std::vector<std::string> cuts;
  for (const pipeline::Cut& cut : spec.plan.cuts) {
    cuts.push_back(cut.ToString());
  }
  spec.note(
      absl::StrCat("the parts of the model are measured; its stages "
                   "begin at ",
                   absl::StrJoin(cuts, ", ")));
}

}  // namespace

absl::StatusOr<JobSpec> WithPipeline(const JobSpec& spec,
                                     const pipeline::Plan* plan) {
  const OpenPipeline& open = *spec.open_pipeline;
  if (open.measure == nullptr || open.set == nullptr) {
    return absl::InvalidArgumentError(
        "JobSpec::open_pipeline has nothing that measures, or that sets; give "
        "both");
  }
  JobSpec closed = spec;
  bool adopted = false;
  if (plan != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(adopted, Adopt(*plan, closed));
  }
  closed.open_pipeline.reset();
  if (adopted) return closed;
  TROUPE_ASSIGN_OR_RETURN(const pipeline::ModelCosts costs,
                          open.measure(closed));
  TROUPE_RETURN_IF_ERROR(open.set(costs, closed.plan));
  Tell(closed);
  return closed;
}

}  // namespace troupe::actors
