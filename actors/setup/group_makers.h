// Makers of groups for ranks on a device: of ranks in one process, and of ranks
// in several; and by NCCL. Jobs and programs use the same ones.
//
//   GroupMaker make_group = LocalGroupsBy(GroupsOn(spec.device));
//   comm::FabricGroupOptions options;
//   options.ranks = {0, 1};
//   TROUPE_ASSIGN_OR_RETURN(comm::Group group, make_group(options));
//
// Threads: any.

#ifndef ACTORS_SETUP_GROUP_MAKERS_H_
#define ACTORS_SETUP_GROUP_MAKERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "actors/setup/roster.h"
#include "comm/fabric.h"
#include "comm/local/local_group.h"
#include "comm/store.h"
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

// The surroundings of groups by NCCL.
struct NcclGroups {
  // Store in which the process of a group's first rank leaves the group's id
  // for the others.
  std::shared_ptr<comm::Store> store;
  // Whether making a group waits for no other process: the ranks' devices wait
  // for the id, before they make their communicators, and ask the store for it
  // without waiting. False: the maker waits for it.
  bool makes_later = false;
  // Whether a rank lives in this process.
  std::function<bool(int rank)> is_local;
  // Number of the attempt to run the ranks.
  std::int32_t generation = 0;
  // Limit on the wait for an id, for peers, and for a collective.
  absl::Duration timeout = absl::Minutes(5);
};

// Returns a maker of groups by NCCL, which makes communicators for the local
// ranks alone. Names of groups differ if their ranks do not. A group of one
// rank is made by `make_lonely`.
GroupMaker GroupsByNccl(NcclGroups how, GroupMaker make_lonely);

// The same for ranks that are all in this process.
GroupMaker LocalGroupsByNccl(absl::Duration timeout, std::int32_t generation,
                             GroupMaker make_lonely);

// The same over the processes of `roster`, of which this is number `process`.
GroupMaker GroupsByNcclOver(std::shared_ptr<const Roster> roster, int process,
                            NcclGroups how, GroupMaker make_lonely);

// Ranks whose sums have an order.
struct SummedRanks {
  nn::Device device;
  int ranks = 1;
  int processes = 1;
};

// Returns the order in which groups of such ranks add up: `order`, which is one
// of pipeline/plan.h's, or for "auto" NCCL's where ranks have GPUs of their own
// and the program has NCCL, and the tree's elsewhere. `name` is the option's,
// for errors.
//   kInvalidArgument: it is none; or it is NCCL's, and there are no GPUs, or no
//     NCCL.
absl::StatusOr<std::string> ChooseReductionOrder(absl::string_view name,
                                                 absl::string_view order,
                                                 const SummedRanks& ranks);

// Returns the number of the ranks in earlier processes of the same host: the
// GPUs of a host are assigned over all its processes.
int RanksBefore(const Roster& roster, int process);

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_GROUP_MAKERS_H_
