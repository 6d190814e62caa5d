#include "actors/setup/rank_setup.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/engine/layer_collectives.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/local/local_group.h"
#include "nn/kernels/open_kernels.h"
#include "pipeline/plan_groups.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/table_index.h"

namespace troupe::actors {
namespace {

using comm::FabricGroupOptions;
using comm::Group;

// Returns a limit on the collectives that one rank has in flight in a group of
// its table: all of a step, and one more.
int InFlightMax(const pipeline::Plan& plan) {
  int most = 0;
  for (const pipeline::RankPlan& rank : plan.ranks) {
    const pipeline::TableIndex index(rank.train);
    std::map<pipeline::GroupId, int> counts;
    for (const pipeline::Action& action : rank.train.actions) {
      if (!pipeline::IsCollective(action.kind)) continue;
      // A bucket's micro-batches are reduced one after the other, and it is
      // gathered again when its gather before has long ended.
      if ((plan.ReducesEachMicroBatch() || plan.gathers_values()) &&
          !pipeline::IsLastRound(action, index)) {
        continue;
      }
      most = std::max(most, ++counts[pipeline::GroupOf(action)]);
    }
  }
  int in_flight = FabricGroupOptions().in_flight_max;
  while (in_flight < most + 1) in_flight *= 2;
  return in_flight;
}

// The groups of all ranks of the job, by rank. Ranks in other processes have
// none.
using Groups = std::vector<RankGroups>;

absl::StatusOr<Groups> MakeGroups(const pipeline::Plan& plan,
                                  nn::DeviceType device,
                                  const GroupMaker& make_group) {
  Groups groups(plan.mesh.size());
  const int in_flight_max = InFlightMax(plan);
  for (const pipeline::PlanGroup& planned : pipeline::GroupsOf(plan)) {
    FabricGroupOptions options;
    options.name = planned.name;
    options.ranks = planned.ranks;
    // The host waits for one collective of a layer at a time, unless a device
    // runs them, and a rank sums a tied bucket once a step.
    const bool has_few = planned.of_layers() || pipeline::IsTied(planned.id);
    options.in_flight_max = has_few ? 2 : in_flight_max;
    if (planned.of_layers() && device == nn::DeviceType::kCuda) {
      options.in_flight_max = 2 * LayerCollectives::kAheadMax;
    }
    TROUPE_ASSIGN_OR_RETURN(Group group, make_group(options));
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (group[i] == nullptr) continue;
      groups[planned.ranks[i]].Add(planned, std::move(group[i]));
    }
  }
  return groups;
}

bool MadeByHooks(const ProcessContext& process) {
  return process.hooks != nullptr && process.hooks->make_group;
}

// Returns the hooks' maker of groups, or that of GroupsOn().
GroupMaker LocalGroupsOf(const ProcessContext& process) {
  return LocalGroupsBy(MadeByHooks(process) ? process.hooks->make_group
                                            : GroupsOn(process.spec->device));
}

}  // namespace

GroupMaker LocalGroups(const ProcessContext& process) {
  GroupMaker in_memory = LocalGroupsOf(process);
  if (MadeByHooks(process) ||
      process.plan->reduction_order != pipeline::kAnyReduction) {
    return in_memory;
  }
  return LocalGroupsByNccl(process.spec->timeout, process.generation,
                           std::move(in_memory));
}

GroupMaker SpanningGroups(const ProcessContext& process, comm::Store& store) {
  const nn::Device device = process.spec->device;
  GroupMaker spanning = GroupsOver(process.links.fabric, process.links.roster,
                                   device, LocalGroupsOf(process));
  if (device.type != nn::DeviceType::kCuda ||
      process.plan->reduction_order != pipeline::kAnyReduction) {
    return spanning;
  }
  NcclGroups how;
  // The shared_ptr does not own the store.
  how.store = std::shared_ptr<comm::Store>(&store, [](comm::Store*) {});
  how.generation = process.generation;
  how.timeout = process.spec->timeout;
  return GroupsByNcclOver(process.links.roster, process.links.fabric->process(),
                          std::move(how), std::move(spanning));
}

absl::Status CheckBuckets(const pipeline::Plan& plan) {
  if (InFlightMax(plan) <= comm::kLocalGroupInFlightMax) {
    return absl::OkStatus();
  }
  return base::FieldError<&pipeline::BucketOptions::bucket_bytes>(absl::StrCat(
      "a stage has more than ", comm::kLocalGroupInFlightMax - 1,
      " gradient buckets; make ",
      base::FieldName<&pipeline::BucketOptions::bucket_bytes>(), " larger"));
}

absl::StatusOr<std::vector<RankContextPtr>> MakeRanks(
    const ProcessContext& process, int first, int last,
    const GroupMaker& make_group) {
  const pipeline::Plan& plan = *process.plan;
  const int before =
      process.links.is_only()
          ? 0
          : RanksBefore(*process.links.roster, process.links.number);
  if (!process.spec->kernels) {
    TROUPE_RETURN_IF_ERROR(base::WithFields<&JobSpec::device>(
        nn::CheckDevices(process.spec->device, before + last - first)));
  }
  TROUPE_ASSIGN_OR_RETURN(
      Groups groups, MakeGroups(plan, process.spec->device.type, make_group));
  std::vector<RankContextPtr> ranks;
  for (int rank = first; rank < last; ++rank) {
    auto context = std::make_shared<RankContext>();
    context->rank = rank;
    context->local_rank = before + rank - first;
    context->coords = plan.mesh.CoordsOf(rank);
    context->generation = process.generation;
    context->spec = process.spec;
    context->plan = process.plan;
    context->span = process.span;
    context->train_table = plan.RankPlanOf(rank).train;
    context->groups = std::move(groups[rank]);
    context->position = std::make_shared<StepPosition>();
    context->start_threads = std::max(1, process.cores / (last - first));
    context->shared_memory = process.links.shared_memory;
    context->hooks = process.hooks;
    if (process.hooks != nullptr && process.hooks->edit_table) {
      process.hooks->edit_table(rank, context->train_table);
    }
    ranks.push_back(std::move(context));
  }
  return ranks;
}

}  // namespace troupe::actors
