// Makers of groups for ranks on a device: of ranks in one process, and of ranks
// in several. Jobs and programs use the same ones.
//
//   GroupMaker make_group = LocalGroupsBy(GroupsOn(spec.device));
//   comm::FabricGroupOptions options;
//   options.ranks = {0, 1};
//   TROUPE_ASSIGN_OR_RETURN(comm::Group group, make_group(options));
//
// Threads: any.

#ifndef ACTORS_SETUP_GROUP_MAKERS_H_
#define ACTORS_SETUP_GROUP_MAKERS_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "actors/setup/roster.h"
#include "comm/fabric.h"
#include "comm/local/local_group.h"
#include "nn/tensor/device.h"

namespace troupe::actors {

// Makes a group of `options.ranks`: a communicator for each rank in this
// process, null for the others.
using GroupMaker = std::function<absl::StatusOr<comm::Group>(
    const comm::FabricGroupOptions& options)>;

// Returns the maker of groups whose ranks are in one process and compute on
// `device`: in the host's memory, of GPUs that reach each other's memory, or of
// other devices, which stage tensors through the host.
comm::GroupFactory GroupsOn(nn::Device device);

// Returns a maker of groups whose ranks are all in this process.
GroupMaker LocalGroupsBy(comm::GroupFactory make_group);

// Returns the maker of groups over the processes of `roster`, which `fabric`
// connects. Groups on a device that is not the host's stage tensors through the
// host, except for those within one process, which `in_process` makes. The
// roster may be null for a device of the host's.
GroupMaker GroupsOver(std::shared_ptr<comm::Fabric> fabric,
                      std::shared_ptr<const Roster> roster, nn::Device device,
                      GroupMaker in_process);

// Returns the number of the ranks in earlier processes of the same host: the
// GPUs of a host are assigned over all its processes.
int RanksBefore(const Roster& roster, int process);

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_GROUP_MAKERS_H_
