// The groups of one rank: every communicator that its actions and its layers
// use.
//
//   const RankGroups& groups = context.groups;
//   groups.Of(GroupId::kDp).Start(collective, /*after=*/comm::Event());
//   groups.ForEach([&](comm::Communicator& group) { group.Abort(why); });
//
// A new kind of group is added here and in rank_setup.cc: whoever starts,
// drives, wakes or aborts collectives goes through these functions.
//
// Threads: as those of the communicators; the struct itself does not change
// once it is filled.

#ifndef ACTORS_ENGINE_RANK_GROUPS_H_
#define ACTORS_ENGINE_RANK_GROUPS_H_

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "pipeline/group_id.h"

namespace troupe::actors {

// A rank in the layers' own group along one axis.
struct AxisGroup {
  std::string axis;  // "dp"
  std::unique_ptr<comm::Communicator> comm;
};

struct RankGroups {
  // All ranks of the job, and those that have the same stages.
  std::unique_ptr<comm::Communicator> world;
  std::unique_ptr<comm::Communicator> dp;
  // The ranks that share a tie (pipeline/ties.h), by its number; null where
  // no other rank has what this one has of it.
  std::vector<std::unique_ptr<comm::Communicator>> ties;
  // The layers' groups, one for each axis that has peers.
  std::vector<AxisGroup> layers;

  // The group of a collective of the table.
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

  // Calls `visit` with these, and with the layers' groups.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    ForEachOfTable(visit);
    for (const AxisGroup& group : layers) visit(*group.comm);
  }
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_RANK_GROUPS_H_
