#include "tests/actors/engine/test_groups.h"

#include <cstddef>
#include <utility>

#include "pipeline/plan.h"
#include "pipeline/plan_groups.h"

namespace troupe::actors {

std::vector<RankGroups> MakeTestGroups(const pipeline::Mesh& mesh,
                                       const comm::GroupFactory& make) {
  pipeline::Plan plan;
  plan.mesh = mesh;
  plan.stages.emplace_back().layer_axes = {"dp"};
  std::vector<RankGroups> groups(mesh.size());
  for (const pipeline::PlanGroup& planned : pipeline::GroupsOf(plan)) {
    comm::LocalGroupOptions options;
    options.size = static_cast<int>(planned.ranks.size());
    comm::Group group = make(options);
    for (std::size_t i = 0; i < group.size(); ++i) {
      groups[planned.ranks[i]].Add(planned, std::move(group[i]));
    }
  }
  return groups;
}

}  // namespace troupe::actors
