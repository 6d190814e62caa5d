#include "actors/setup/group_makers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "comm/device/device_group.h"
#include "comm/device/staged_group.h"

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
