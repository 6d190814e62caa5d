#include "troupe/trainer/process_ranks.h"

#include <algorithm>

#include "actors/launchers/cluster_from_environment.h"

namespace troupe {

ProcessShare ShareOf(int process, int processes, int count) {
  const int each = count / processes;
  const int more = count % processes;
  return {process * each + std::min(process, more),
          each + (process < more ? 1 : 0)};
}

ProcessRanks RanksOfProcess(const PlacementOptions& options,
                            const char* const* environment) {
  const int devices = std::max(1, options.devices);
  ProcessRanks ranks;
  ranks.world_size = devices * std::max(1, options.num_nodes);
  if (options.cluster.has_value()) {
    const int processes = std::max(1, options.cluster->processes);
    ranks.global_rank =
        ShareOf(options.cluster->process, processes, ranks.world_size).first;
    ranks.local_rank = ranks.global_rank % devices;
    ranks.node_rank = ranks.global_rank / devices;
    return ranks;
  }
  const auto placement = actors::PlacementFromEnvironment(environment);
  if (!placement.ok()) return ranks;
  ranks.global_rank =
      ShareOf(placement->process, placement->processes, ranks.world_size).first;
  ranks.local_rank =
      ShareOf(placement->local_process, placement->local_processes, devices)
          .first;
  // Open MPI does not number nodes.
  ranks.node_rank =
      placement->node >= 0 ? placement->node : ranks.global_rank / devices;
  return ranks;
}

}  // namespace troupe
