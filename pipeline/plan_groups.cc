#include "pipeline/plan_groups.h"

#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipeline/mesh.h"
#include "pipeline/ties.h"

namespace troupe::pipeline {
namespace {

// Returns " at tp=1 ep=0": the coordinates of `rank` along the axes besides dp
// and pp that have more than one rank; "" if there are none.
std::string PlaceOfCopy(const Mesh& mesh, int rank) {
  std::string text;
  for (const Axis& axis : mesh.axes()) {
    const int number = mesh.AxisNumber(axis.name);
    if (axis.size == 1 || number == kDpAxis || number == kPpAxis) continue;
    absl::StrAppend(&text, text.empty() ? " at " : " ", axis.name, "=",
                    mesh.CoordOf(rank, number));
  }
  return text;
}

// Adds the groups of losses and norms: one for each copy of the job that the
// axes besides dp and pp make.
void AddDpPp(const Plan& plan, std::vector<PlanGroup>& groups) {
  const Mesh& mesh = plan.mesh;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    if (mesh.CoordOf(rank, kDpAxis) != 0) continue;
    if (mesh.CoordOf(rank, kPpAxis) != 0) continue;
    PlanGroup group;
    group.id = GroupId::kDpPp;
    group.name = absl::StrCat("all ranks", PlaceOfCopy(mesh, rank));
    group.ranks = mesh.Group(rank, GroupId::kDpPp);
    groups.push_back(group);
  }
}

void AddReplicas(const Plan& plan, std::vector<PlanGroup>& groups) {
  const Mesh& mesh = plan.mesh;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    if (mesh.CoordOf(rank, kDpAxis) != 0) continue;
    const std::string stage =
        mesh.pp() == 1
            ? ""
            : absl::StrCat(" of stage ", mesh.CoordOf(rank, kPpAxis));
    PlanGroup group;
    group.id = GroupId::kDp;
    group.name = absl::StrCat("replicas", stage, PlaceOfCopy(mesh, rank));
    group.ranks = mesh.DpGroup(rank);
    groups.push_back(group);
  }
}

void AddLayers(const Plan& plan, std::vector<PlanGroup>& groups) {
  const Mesh& mesh = plan.mesh;
  std::set<std::string> axes;
  bool shares_buffers = false;
  for (const StagePlan& stage : plan.stages) {
    axes.insert(stage.layer_axes.begin(), stage.layer_axes.end());
    shares_buffers |= stage.shares_buffers;
  }
  const std::string dp = "dp";
  const bool between_steps = shares_buffers || plan.owners() > 1;
  const bool for_layers = !(between_steps && axes.insert(dp).second);
  for (const std::string& axis : axes) {
    if (mesh.SizeOf(axis) == 1) continue;
    PlanGroup group;
    group.id = GroupAlong(mesh.AxisNumber(axis));
    group.layer_axis = axis;
    group.name = axis != dp || for_layers ? absl::StrCat("layers along ", axis)
                 : plan.owners() > 1      ? "states of replicas"
                                          : "buffers of replicas";
    for (int rank = 0; rank < mesh.size(); ++rank) {
      if (mesh.CoordOf(rank, axis) != 0) continue;
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
  AddDpPp(plan, groups);
  AddReplicas(plan, groups);
  AddLayers(plan, groups);
  AddTies(plan, groups);
  return groups;
}

}  // namespace troupe::pipeline
