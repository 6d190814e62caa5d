// The communicators that the ranks of a plan need, as data: process groups, as
// in torch.distributed.
//
//   for (const PlanGroup& group : GroupsOf(plan)) {
//     group.name;        // "replicas of stage 1"
//     group.ranks;       // {2, 3}
//     group.id;          // GroupId::kDp, as in the tables of these ranks
//     group.ToString();  // "replicas of stage 1: 2 3"
//     Connect(group.ranks);
//   }
//
// The list follows from the plan alone. All processes make the same groups in
// its order, whichever ranks they have. A rank is in at most one group of each
// id, apart from those of layers.
//
// Cost: linear in the plan, and in the sizes of the groups.

#ifndef PIPELINE_PLAN_GROUPS_H_
#define PIPELINE_PLAN_GROUPS_H_

#include <string>
#include <vector>

#include "pipeline/group_id.h"
#include "pipeline/plan.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

struct PlanGroup {
  GroupId id = GroupId::kDpPp;
  // Axis along which layers communicate in it (StagePlan::layer_axes), or
  // replicas share buffers (StagePlan::shares_buffers) or optimizer states
  // (PlanChoices::owners()), or ranks along tp pieces (StagePlan::split_elems),
  // between steps. Empty: it belongs to the collectives of tables, whose rows
  // name `id` (pipeline/table/action_rules.h).
  std::string layer_axis;
  std::string name;        // name in errors
  std::vector<int> ranks;  // ranks of the job, by rank of the group

  bool of_layers() const { return !layer_axis.empty(); }
  // Returns "replicas of stage 1: 2 3".
  std::string ToString() const;
};

// Returns the groups of losses and norms: one of all ranks, or one at each
// place along the axes besides dp and pp; if parameters are split along tp, one
// of norms at each place along the axes besides tp, dp and pp, and where the
// tables have a PN one for the norms of each stage's parameters; one for the
// replicas of each stage at each place besides dp and pp; those of layers,
// along each axis that they use and that has more than one rank, and along dp
// if replicas share buffers; and one for each tie between ranks, in each
// replica.
std::vector<PlanGroup> GroupsOf(const Plan& plan);

// Returns the group of a collective in the tables of `plan`: GroupOf(action),
// but kDpPp for kTpDpPp if the plan splits no parameter, and kTpDp for a PN if
// it splits some. The PN keeps its place among the collectives of kDp.
GroupId GroupIn(const Plan& plan, const Action& action);

}  // namespace troupe::pipeline

#endif  // PIPELINE_PLAN_GROUPS_H_
