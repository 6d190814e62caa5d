// Makes the groups of all ranks of a mesh in one process, as actors/setup does.
//
//   std::vector<RankGroups> groups = MakeTestGroups(plan.mesh);
//   setup.groups = &groups[rank];

#ifndef TESTS_ACTORS_ENGINE_TEST_GROUPS_H_
#define TESTS_ACTORS_ENGINE_TEST_GROUPS_H_

#include <vector>

#include "actors/engine/rank_groups.h"
#include "comm/local/local_group.h"
#include "pipeline/mesh.h"

namespace troupe::actors {

// Returns the groups by rank. `make`: comm::MakeDeviceGroup for devices. Layers
// have groups along dp if dp > 1; there are no ties.
std::vector<RankGroups> MakeTestGroups(
    const pipeline::Mesh& mesh,
    const comm::GroupFactory& make = comm::MakeLocalGroup);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_ENGINE_TEST_GROUPS_H_
