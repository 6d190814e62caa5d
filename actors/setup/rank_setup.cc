#include "actors/setup/rank_setup.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/device/device_group.h"
#include "comm/device/staged_group.h"
#include "comm/local/local_group.h"
#include "comm/memory_store.h"
#include "comm/nccl/nccl_backend.h"
#include "nn/kernels/open_kernels.h"
#include "pipeline/action_rules.h"
#include "pipeline/plan_groups.h"

namespace troupe::actors {
namespace {

using comm::FabricGroupOptions;
using comm::Group;

// Returns a limit on the collectives that one rank has in flight in a group of
// its table: all of a step, and one more.
int InFlightMax(const pipeline::Plan& plan) {
  int most = 0;
  for (const pipeline::RankPlan& rank : plan.ranks) {
    std::map<pipeline::GroupId, int> counts;
    for (const pipeline::Action& action : rank.train.actions) {
      if (!pipeline::IsCollective(action.kind)) continue;
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
                                  const GroupMaker& make_group) {
  Groups groups(plan.mesh.size());
  const int in_flight_max = InFlightMax(plan);
  for (const pipeline::PlanGroup& planned : pipeline::GroupsOf(plan)) {
    FabricGroupOptions options;
    options.name = planned.name;
    options.ranks = planned.ranks;
    // One collective of a layer is in flight at a time, and a rank sums a tied
    // bucket once a step.
    const bool has_few = planned.of_layers() || pipeline::IsTied(planned.id);
    options.in_flight_max = has_few ? 2 : in_flight_max;
    TROUPE_ASSIGN_OR_RETURN(Group group, make_group(options));
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (group[i] == nullptr) continue;
      groups[planned.ranks[i]].Add(planned, std::move(group[i]));
    }
  }
  return groups;
}

}  // namespace

comm::GroupFactory GroupsOn(nn::Device device) {
  return device.type == nn::DeviceType::kCuda ? comm::MakeDeviceGroup
                                              : comm::MakeLocalGroup;
}

namespace {

bool MadeByHooks(const ProcessContext& process) {
  return process.hooks != nullptr && process.hooks->make_group;
}

// Returns the hooks' maker of groups, or that of GroupsOn().
GroupMaker LocalGroupsOf(const ProcessContext& process) {
  return [make_group = MadeByHooks(process) ? process.hooks->make_group
                                            : GroupsOn(process.spec->device)](
             const FabricGroupOptions& group) {
    comm::LocalGroupOptions options;
    options.size = static_cast<int>(group.ranks.size());
    options.chunk_bytes = group.chunk_bytes;
    options.in_flight_max = group.in_flight_max;
    return make_group(options);
  };
}

}  // namespace

GroupMaker LocalGroups(const ProcessContext& process) {
  GroupMaker in_memory = LocalGroupsOf(process);
  if (MadeByHooks(process) ||
      process.plan->reduction_order != pipeline::kAnyReduction) {
    return in_memory;
  }
  return GroupsByNccl(
      process, std::make_shared<comm::MemoryStore>(), [](int) { return true; },
      std::move(in_memory));
}

GroupMaker GroupsByNccl(const ProcessContext& process,
                        std::shared_ptr<comm::Store> store,
                        std::function<bool(int rank)> is_local,
                        GroupMaker make_lonely) {
  return [=, generation = static_cast<std::uint32_t>(process.generation),
          timeout = process.spec->timeout](
             const FabricGroupOptions& group) -> absl::StatusOr<Group> {
    // A rank without peers needs no NCCL.
    if (group.ranks.size() == 1) return make_lonely(group);
    comm::NcclGroupOptions options;
    options.name = group.name;
    options.ranks = group.ranks;
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      if (is_local(group.ranks[i]))
        options.local.push_back(static_cast<int>(i));
    }
    options.generation = generation;
    options.timeout = timeout;
    options.in_flight_max = group.in_flight_max;
    if (options.local.empty()) return Group(group.ranks.size());
    return comm::MakeNcclGroup(options, *store);
  };
}

namespace {

// Returns a maker of groups on GPUs that stage tensors through the host, except
// for groups within one process, which `in_process` makes.
GroupMaker StagedGroups(const ProcessContext& process, GroupMaker in_process) {
  return [fabric = process.fabric, roster = process.roster, in_process](
             const FabricGroupOptions& group) -> absl::StatusOr<Group> {
    const int first = roster->ProcessOf(group.ranks[0]);
    const bool in_one =
        std::all_of(group.ranks.begin(), group.ranks.end(),
                    [&](int rank) { return roster->ProcessOf(rank) == first; });
    if (in_one && first != fabric->process()) return Group(group.ranks.size());
    if (in_one) return in_process(group);
    TROUPE_ASSIGN_OR_RETURN(Group made, fabric->MakeGroup(group));
    for (auto& rank : made) {
      if (rank != nullptr) rank = comm::StageThroughHost(std::move(rank));
    }
    return made;
  };
}

}  // namespace

GroupMaker SpanningGroups(const ProcessContext& process, comm::Store& store) {
  if (process.spec->device.type != nn::DeviceType::kCuda) {
    return [fabric = process.fabric](const FabricGroupOptions& group) {
      return fabric->MakeGroup(group);
    };
  }
  GroupMaker in_process = LocalGroupsOf(process);
  GroupMaker staged = StagedGroups(process, in_process);
  if (process.plan->reduction_order != pipeline::kAnyReduction) return staged;
  const auto is_local = [fabric = process.fabric,
                         roster = process.roster](int rank) {
    return roster->ProcessOf(rank) == fabric->process();
  };
  // The shared_ptr does not own the store.
  const std::shared_ptr<comm::Store> borrowed(&store, [](comm::Store*) {});
  return GroupsByNccl(process, borrowed, is_local, std::move(staged));
}

int RanksBefore(const Roster& roster, int process) {
  int ranks = 0;
  for (int p = 0; p < process; ++p) {
    if (roster.member(p).host == roster.member(process).host) {
      ranks += roster.member(p).ranks;
    }
  }
  return ranks;
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
  const int before = process.roster == nullptr
                         ? 0
                         : RanksBefore(*process.roster, process.number);
  if (!process.spec->kernels) {
    TROUPE_RETURN_IF_ERROR(base::WithFields<&JobSpec::device>(
        nn::CheckDevices(process.spec->device, before + last - first)));
  }
  TROUPE_ASSIGN_OR_RETURN(Groups groups, MakeGroups(plan, make_group));
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
    context->shared_memory = process.shared_memory;
    context->hooks = process.hooks;
    if (process.hooks != nullptr && process.hooks->edit_table) {
      process.hooks->edit_table(rank, context->train_table);
    }
    ranks.push_back(std::move(context));
  }
  return ranks;
}

}  // namespace troupe::actors
