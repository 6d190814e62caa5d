#include "actors/setup/group_makers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/device/device_group.h"
#include "comm/device/staged_group.h"
#include "comm/memory_store.h"
#include "comm/nccl/nccl_backend.h"
#include "pipeline/plan.h"

namespace troupe::actors {
namespace {

using comm::FabricGroupOptions;
using comm::Group;

Group Staged(Group host) {
  for (auto& rank : host) {
    if (rank != nullptr) rank = comm::StageThroughHost(std::move(rank));
  }
  return host;
}

}  // namespace

comm::GroupFactory GroupsOn(nn::Device device) {
  if (device.is_host()) return comm::MakeLocalGroup;
  if (device.type == nn::DeviceType::kCuda) return comm::MakeDeviceGroup;
  return [](const comm::LocalGroupOptions& options) {
    return Staged(comm::MakeLocalGroup(options));
  };
}

GroupMaker LocalGroupsBy(comm::GroupFactory make_group) {
  return [make_group = std::move(make_group)](const FabricGroupOptions& group) {
    comm::LocalGroupOptions options;
    options.size = static_cast<int>(group.ranks.size());
    options.chunk_bytes = group.chunk_bytes;
    options.in_flight_max = group.in_flight_max;
    return make_group(options);
  };
}

GroupMaker GroupsOver(std::shared_ptr<comm::Fabric> fabric,
                      std::shared_ptr<const Roster> roster, nn::Device device,
                      GroupMaker in_process) {
  if (device.is_host()) {
    return [fabric = std::move(fabric)](const FabricGroupOptions& group) {
      return fabric->MakeGroup(group);
    };
  }
  return [fabric = std::move(fabric), roster = std::move(roster),
          in_process = std::move(in_process)](
             const FabricGroupOptions& group) -> absl::StatusOr<Group> {
    const int first = roster->ProcessOf(group.ranks[0]);
    const bool in_one =
        std::all_of(group.ranks.begin(), group.ranks.end(),
                    [&](int rank) { return roster->ProcessOf(rank) == first; });
    if (in_one && first != fabric->process()) return Group(group.ranks.size());
    if (in_one) return in_process(group);
    TROUPE_ASSIGN_OR_RETURN(Group made, fabric->MakeGroup(group));
    return Staged(std::move(made));
  };
}

GroupMaker GroupsByNccl(NcclGroups how, GroupMaker make_lonely) {
  return [how = std::move(how), make_lonely = std::move(make_lonely)](
             const FabricGroupOptions& group) -> absl::StatusOr<Group> {
    // A rank without peers needs no NCCL.
    if (group.ranks.size() == 1) return make_lonely(group);
    comm::NcclGroupOptions options;
    options.name = group.name;
    options.ranks = group.ranks;
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      if (how.is_local(group.ranks[i])) {
        options.local.push_back(static_cast<int>(i));
      }
    }
    options.generation = static_cast<std::uint32_t>(how.generation);
    options.timeout = how.timeout;
    if (how.makes_later) options.later_id = how.store;
    options.in_flight_max = group.in_flight_max;
    if (options.local.empty()) return Group(group.ranks.size());
    return comm::MakeNcclGroup(options, *how.store);
  };
}

GroupMaker LocalGroupsByNccl(absl::Duration timeout, std::int32_t generation,
                             GroupMaker make_lonely) {
  NcclGroups how;
  how.store = std::make_shared<comm::MemoryStore>();
  how.is_local = [](int) { return true; };
  how.generation = generation;
  how.timeout = timeout;
  return GroupsByNccl(std::move(how), std::move(make_lonely));
}

GroupMaker GroupsByNcclOver(std::shared_ptr<const Roster> roster, int process,
                            NcclGroups how, GroupMaker make_lonely) {
  how.is_local = [roster = std::move(roster), process](int rank) {
    return roster->ProcessOf(rank) == process;
  };
  return GroupsByNccl(std::move(how), std::move(make_lonely));
}

absl::StatusOr<std::string> ChooseReductionOrder(absl::string_view name,
                                                 absl::string_view order,
                                                 const SummedRanks& ranks) {
  const bool on_gpus = ranks.device.type == nn::DeviceType::kCuda;
  const bool on_several =
      on_gpus && ranks.ranks > 1 &&
      (ranks.device.index == nn::Device::kOneForEach || ranks.processes > 1);
  if (order == pipeline::kAutoReduction) {
    return std::string(on_several && comm::HasNccl()
                           ? pipeline::kAnyReduction
                           : pipeline::kTreeReduction);
  }
  if (order == pipeline::kTreeReduction) return std::string(order);
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " = \"", order, "\"", why));
  };
  if (order != pipeline::kAnyReduction) {
    return refuse(absl::StrCat(", must be \"", pipeline::kAutoReduction,
                               "\", \"", pipeline::kTreeReduction, "\" or \"",
                               pipeline::kAnyReduction, "\""));
  }
  if (!on_gpus) {
    return refuse(absl::StrCat(" is for GPUs, and the device is ",
                               ranks.device.ToString(), "; take \"tree\""));
  }
  if (!comm::HasNccl()) {
    return refuse(
        " needs NCCL, without which this program was built; build it with "
        "--config=cuda and //comm/nccl:for_programs in its deps, or take "
        "\"tree\"");
  }
  return std::string(order);
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

}  // namespace troupe::actors
