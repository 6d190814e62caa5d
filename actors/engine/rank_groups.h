// The groups of one rank: every communicator that its actions and its layers
// use.
//
//   const RankGroups& groups = context.groups;
//   groups.Of(GroupId::kDp).Start(collective, /*after=*/comm::Event());
//   groups.ForEach([&](comm::Communicator& group) { group.Abort(why); });
//
// They are those of pipeline/plan_groups.h that have the rank: a new kind of
// group is added there, and all code that makes, starts, drives, wakes, reports
// or aborts collectives goes through the list.
//
// Threads: the same as the communicators'; the list itself does not change once
// it is filled.

#ifndef ACTORS_ENGINE_RANK_GROUPS_H_
#define ACTORS_ENGINE_RANK_GROUPS_H_

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "comm/communicator.h"
#include "pipeline/group_id.h"
#include "pipeline/plan_groups.h"

namespace troupe::actors {

// A group of the plan, and the rank's communicator in it.
struct RankGroup {
  pipeline::PlanGroup plan;
  std::shared_ptr<comm::Communicator> comm;
};

class RankGroups {
 public:
  // Adds a group of the plan that has the rank.
  void Add(pipeline::PlanGroup plan, std::shared_ptr<comm::Communicator> comm) {
    std::vector<RankGroup>& groups = plan.of_layers() ? of_layers_ : of_table_;
    groups.push_back({std::move(plan), std::move(comm)});
  }

  // The groups of the table's collectives, and those of the layers, one for
  // each axis that has peers; both in the order in which they were added.
  const std::vector<RankGroup>& of_table() const { return of_table_; }
  const std::vector<RankGroup>& of_layers() const { return of_layers_; }

  // Returns the group of a collective of the table. The rank must be in it.
  // Where no parameter is split along tp, kTpDpPp is the group kDpPp.
  comm::Communicator& Of(pipeline::GroupId id) const { return *HandleOf(id); }
  const std::shared_ptr<comm::Communicator>& HandleOf(
      pipeline::GroupId id) const {
    const RankGroup* const found = Find(id);
    TROUPE_CHECK(found != nullptr,
                 "a rank is in the groups that its table names");
    return found->comm;
  }

  // Returns the number of ranks in a group of the table: 1 if the rank has no
  // such group.
  int SizeOf(pipeline::GroupId id) const {
    const RankGroup* const found = Find(id);
    return found == nullptr ? 1 : found->comm->size();
  }

  // Calls `visit` with each group of the table's collectives.
  template <typename Visit>
  void ForEachOfTable(const Visit& visit) const {
    for (const RankGroup& group : of_table_) visit(*group.comm);
  }

  // Calls `visit` with those groups, then with the groups of the layers.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    ForEachOfTable(visit);
    for (const RankGroup& group : of_layers_) visit(*group.comm);
  }

 private:
  const RankGroup* Find(pipeline::GroupId id) const {
    for (const RankGroup& group : of_table_) {
      if (group.plan.id == id) return &group;
    }
    return id == pipeline::GroupId::kTpDpPp ? Find(pipeline::GroupId::kDpPp)
                                            : nullptr;
  }

  std::vector<RankGroup> of_table_, of_layers_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_RANK_GROUPS_H_
