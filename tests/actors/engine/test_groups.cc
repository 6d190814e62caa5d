#include "tests/actors/engine/test_groups.h"

#include <utility>

namespace troupe::actors {

std::vector<RankGroups> MakeTestGroups(const pipeline::Mesh& mesh,
                                       const comm::GroupFactory& make) {
  std::vector<RankGroups> groups(mesh.size());
  comm::LocalGroupOptions options;
  options.size = mesh.size();
  comm::Group world = make(options);
  for (int rank = 0; rank < mesh.size(); ++rank) {
    groups[rank].world = std::move(world[rank]);
  }
  options.size = mesh.dp();
  for (int stage = 0; stage < mesh.pp(); ++stage) {
    comm::Group replicas = make(options);
    comm::Group layers = make(options);
    for (int dp = 0; dp < mesh.dp(); ++dp) {
      RankGroups& rank = groups[mesh.RankOf({dp, stage})];
      rank.dp = std::move(replicas[dp]);
      if (mesh.dp() > 1) rank.layers.push_back({"dp", std::move(layers[dp])});
    }
  }
  return groups;
}

}  // namespace troupe::actors
