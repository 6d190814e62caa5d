// The groups of one rank: every communicator that its actions and its layers
// use.
//
//   const RankGroups& groups = context.groups;
//   groups.Of(GroupId::kDp).Start(collective, /*after=*/comm::Event());
//   groups.ForEach([&](comm::Communicator& group) { group.Abort(why); });
//
// A new kind of group is added here and in rank_setup.cc: all code that starts,
// drives, wakes or aborts collectives uses these functions.
//
// Threads: the same as the communicators'; the struct itself does not change
// once it is filled.

#ifndef ACTORS_ENGINE_RANK_GROUPS_H_
#define ACTORS_ENGINE_RANK_GROUPS_H_

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "pipeline/group_id.h"

namespace troupe::actors {

// The communicator that layers use along one axis of the mesh.
struct AxisGroup {
  std::string axis;  // "dp"
  std::unique_ptr<comm::Communicator> comm;
};

struct RankGroups {
  // Groups of all ranks of the job, and of the ranks with the same stages.
  std::unique_ptr<comm::Communicator> world;
  std::unique_ptr<comm::Communicator> dp;
  // Groups of the ranks that share a tie (pipeline/ties.h), by number of the
  // tie; null if no other rank has a copy, or this one has none.
  std::vector<std::unique_ptr<comm::Communicator>> ties;
  // Groups of the layers, one for each axis that has peers.
  std::vector<AxisGroup> layers;

  // Returns the group of a collective of the table.
  comm::Communicator& Of(pipeline::GroupId group) const {
    if (group == pipeline::GroupId::kWorld) return *world;
    return pipeline::IsTied(group) ? *ties[pipeline::TieOf(group)] : *dp;
  }

  // Calls `visit` with each group of the table's collectives.
  template <typename Visit>
  void ForEachOfTable(const Visit& visit) const {
    visit(*world);
    visit(*dp);
    for (const auto& tie : ties) {
      if (tie != nullptr) visit(*tie);
    }
  }

  // Calls `visit` with those groups, then with the groups of the layers.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    ForEachOfTable(visit);
    for (const AxisGroup& group : layers) visit(*group.comm);
  }
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_RANK_GROUPS_H_
