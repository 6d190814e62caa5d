// Makes the contexts of the ranks in a process, and their groups (process
// groups, as in torch.distributed).
//
//   TROUPE_ASSIGN_OR_RETURN(process->ranks,
//                           MakeRanks(*process, /*first=*/0, /*last=*/2,
//                                     LocalGroups(*process)));
//
// Every process makes the same groups in the same order, whichever ranks it
// has: those of pipeline/plan_groups.h.

#ifndef ACTORS_SETUP_RANK_SETUP_H_
#define ACTORS_SETUP_RANK_SETUP_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/setup/group_makers.h"
#include "actors/setup/process_context.h"
#include "comm/fabric.h"
#include "comm/store.h"

namespace troupe::actors {

// Returns the maker of groups for a job whose ranks are all in this process: by
// its hooks if they make groups, by NCCL if its plan permits any order of
// reduction, else by GroupsOn().
GroupMaker LocalGroups(const ProcessContext& process);

// Returns the maker of groups for a job in several processes, which
// `process.links` connects. Groups of GPUs use NCCL, or stage tensors through
// the host (with the tree's bits), by the plan's reduction order. All processes
// share `store`, which outlives the last call.
GroupMaker SpanningGroups(const ProcessContext& process, comm::Store& store);

// Makes the contexts of ranks [first, last) of the plan.
//   kUnavailable: they need more devices than there are.
absl::StatusOr<std::vector<RankContextPtr>> MakeRanks(
    const ProcessContext& process, int first, int last,
    const GroupMaker& make_group);

// Checks that a group can have all buckets of a stage in flight.
//   kInvalidArgument: the plan has more; names the field.
absl::Status CheckBuckets(const pipeline::Plan& plan);

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_RANK_SETUP_H_
