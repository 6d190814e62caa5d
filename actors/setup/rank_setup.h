// The contexts of the ranks that live in a process, and the groups in which
// they meet the others.
//
//   TROUPE_ASSIGN_OR_RETURN(process->ranks,
//                           MakeRanks(*process, /*first=*/0, /*last=*/2,
//                                     LocalGroups(*process)));
//
// Every process makes the same groups in the same order, whichever ranks it
// has: the one of the whole job, one for each stage, those of layers, and those
// of stages that share parameters.

#ifndef ACTORS_SETUP_RANK_SETUP_H_
#define ACTORS_SETUP_RANK_SETUP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/setup/process_context.h"
#include "comm/fabric.h"
#include "comm/store.h"
#include "pipeline/ties.h"

namespace troupe::actors {

// Makes a group of `options.ranks`: a communicator for each rank that lives
// here, null for the others.
using GroupMaker = std::function<absl::StatusOr<comm::Group>(
    const comm::FabricGroupOptions& options)>;

// What errors call the groups of a rank: that of the whole job, that of its
// stage's replicas, that of its layers along an axis, and that of a tie.
inline constexpr char kWorldGroup[] = "all ranks";
std::string ReplicaGroup(const pipeline::Plan& plan, int pp);
std::string LayerGroup(const std::string& axis);
std::string TieGroup(const pipeline::Tie& tie);

// Makes groups of ranks that live in one process and compute on `device`: in
// the host's memory, or of devices.
comm::GroupFactory GroupsOn(nn::Device device);

// Groups of a job whose ranks all live in this process: by its hooks where they
// make groups, by NCCL where its plan leaves the order to that, or as
// GroupsOn() makes them.
GroupMaker LocalGroups(const ProcessContext& process);

// Groups by NCCL, whose ids go by `store`; of the ranks of this process alone
// are there communicators. Where a group has one rank it is of `make_lonely`.
GroupMaker GroupsByNccl(const ProcessContext& process,
                        std::shared_ptr<comm::Store> store,
                        std::function<bool(int rank)> is_local,
                        GroupMaker make_lonely);

// Groups of a job whose ranks live in several processes, which `process.fabric`
// connects. Those of GPUs are by NCCL, or staged through the host (which has
// the tree's bits), as the plan says. `store` is one of the job, and outlives
// the last call.
GroupMaker SpanningGroups(const ProcessContext& process, comm::Store& store);

// The number of ranks of the job on this host that live in processes before
// this one: GPUs are given out over all of them.
int RanksBefore(const Roster& roster, int process);

// The contexts of ranks [first, last) of the plan.
//   kUnavailable: they need more devices than there are.
absl::StatusOr<std::vector<RankContextPtr>> MakeRanks(
    const ProcessContext& process, int first, int last,
    const GroupMaker& make_group);

// kInvalidArgument: the plan has more buckets than a group can have in flight;
// blames the field.
absl::Status CheckBuckets(const pipeline::Plan& plan);

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_RANK_SETUP_H_
