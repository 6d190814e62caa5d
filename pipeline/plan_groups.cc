#include "pipeline/plan_groups.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipeline/mesh.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/ties.h"

namespace troupe::pipeline {
namespace {

// Returns " at tp=1 ep=0": the coordinates of `rank` along the axes besides
// `along` that have more than one rank; "" if there are none.
std::string PlaceBeside(const Mesh& mesh, int rank,
                        std::initializer_list<int> along) {
  std::string text;
  for (const Axis& axis : mesh.axes()) {
    const int number = mesh.AxisNumber(axis.name);
    const bool varies =
        std::find(along.begin(), along.end(), number) != along.end();
    if (axis.size == 1 || varies) continue;
    absl::StrAppend(&text, text.empty() ? " at " : " ", axis.name, "=",
                    mesh.CoordOf(rank, number));
  }
  return text;
}

// Adds the groups of losses or norms, kDpPp or kTpDpPp: one for each copy of
// the job that the other axes make.
void AddSums(const Plan& plan, GroupId id, std::vector<PlanGroup>& groups) {
  const Mesh& mesh = plan.mesh;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    PlanGroup group;
    group.id = id;
    group.ranks = mesh.Group(rank, id);
    if (group.ranks[0] != rank) continue;
    group.name =
        id == GroupId::kTpDpPp
            ? absl::StrCat("all ranks and pieces",
                           PlaceBeside(mesh, rank, {kTpAxis, kDpAxis, kPpAxis}))
            : absl::StrCat("all ranks",
                           PlaceBeside(mesh, rank, {kDpAxis, kPpAxis}));
    groups.push_back(group);
  }
}

// Returns " of stage 1", or "" if there is one stage.
std::string StageOf(const Mesh& mesh, int rank) {
  return mesh.pp() == 1
             ? ""
             : absl::StrCat(" of stage ", mesh.CoordOf(rank, kPpAxis));
}

void AddReplicas(const Plan& plan, std::vector<PlanGroup>& groups) {
  const Mesh& mesh = plan.mesh;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    if (mesh.CoordOf(rank, kDpAxis) != 0) continue;
    PlanGroup group;
    group.id = GroupId::kDp;
    group.name = absl::StrCat("replicas", StageOf(mesh, rank),
                              PlaceBeside(mesh, rank, {kDpAxis, kPpAxis}));
    group.ranks = mesh.DpGroup(rank);
    groups.push_back(group);
  }
}

// Adds the groups in which norms of parameters with pieces are added up.
void AddPieces(const Plan& plan, std::vector<PlanGroup>& groups) {
  const Mesh& mesh = plan.mesh;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    PlanGroup group;
    group.id = GroupId::kTpDp;
    group.ranks = mesh.Group(rank, GroupId::kTpDp);
    if (group.ranks[0] != rank) continue;
    group.name =
        absl::StrCat("replicas and pieces", StageOf(mesh, rank),
                     PlaceBeside(mesh, rank, {kTpAxis, kDpAxis, kPpAxis}));
    groups.push_back(group);
  }
}

bool SumsNorms(const Plan& plan) {
  for (const RankPlan& rank : plan.ranks) {
    for (const Action& action : rank.train.actions) {
      if (action.kind == ActionKind::kReduceNorms) return true;
    }
  }
  return false;
}

void AddLayers(const Plan& plan, std::vector<PlanGroup>& groups) {
  const Mesh& mesh = plan.mesh;
  std::set<std::string> axes;
  bool shares_buffers = false;
  for (const StagePlan& stage : plan.stages) {
    axes.insert(stage.layer_axes.begin(), stage.layer_axes.end());
    shares_buffers |= stage.shares_buffers;
  }
  // Pieces are gathered for checkpoints, whether layers communicate or not.
  if (plan.SplitsParameters()) axes.insert("tp");
  const std::string dp = "dp";
  const bool between_steps = shares_buffers || plan.owners() > 1;
  const bool for_layers = !(between_steps && axes.insert(dp).second);
  for (const std::string& axis : axes) {
    if (mesh.SizeOf(axis) == 1) continue;
    PlanGroup group;
    group.id = GroupAlong(mesh.AxisNumber(axis));
    group.layer_axis = axis;
    const std::string name = axis != dp || for_layers
                                 ? absl::StrCat("layers along ", axis)
                             : plan.owners() > 1 ? "states of replicas"
                                                 : "buffers of replicas";
    const int number = mesh.AxisNumber(axis);
    for (int rank = 0; rank < mesh.size(); ++rank) {
      if (mesh.CoordOf(rank, number) != 0) continue;
      group.name = absl::StrCat(name, PlaceBeside(mesh, rank, {number}));
      group.ranks = mesh.Group(rank, axis);
      groups.push_back(group);
    }
  }
}

void AddTies(const Plan& plan, std::vector<PlanGroup>& groups) {
  const Mesh& mesh = plan.mesh;
  const std::vector<Tie> ties = TiesOf(plan.stages);
  for (std::size_t number = 0; number < ties.size(); ++number) {
    const std::vector<int> places = PlacesOf(ties[number], plan.stages);
    if (places.size() == 1) continue;
    PlanGroup group;
    group.id = TiedGroup(static_cast<int>(number));
    group.name = absl::StrCat("stages that share ", ties[number].name);
    for (int rank = 0; rank < mesh.size(); ++rank) {
      if (mesh.CoordOf(rank, kPpAxis) != places[0]) continue;
      group.ranks.clear();
      for (const int pp : places) {
        group.ranks.push_back(mesh.RankWith(rank, kPpAxis, pp));
      }
      groups.push_back(group);
    }
  }
}

}  // namespace

std::string PlanGroup::ToString() const {
  return absl::StrCat(name, ": ", absl::StrJoin(ranks, " "));
}

std::vector<PlanGroup> GroupsOf(const Plan& plan) {
  std::vector<PlanGroup> groups;
  AddSums(plan, GroupId::kDpPp, groups);
  if (plan.SplitsParameters()) AddSums(plan, GroupId::kTpDpPp, groups);
  AddReplicas(plan, groups);
  if (plan.SplitsParameters() && SumsNorms(plan)) AddPieces(plan, groups);
  AddLayers(plan, groups);
  AddTies(plan, groups);
  return groups;
}

GroupId GroupIn(const Plan& plan, const Action& action) {
  const GroupId group = GroupOf(action);
  if (group == GroupId::kTpDpPp) {
    return plan.SplitsParameters() ? group : GroupId::kDpPp;
  }
  const bool of_pieces =
      action.kind == ActionKind::kReduceNorms && plan.SplitsParameters();
  return of_pieces ? GroupId::kTpDp : group;
}

}  // namespace troupe::pipeline
