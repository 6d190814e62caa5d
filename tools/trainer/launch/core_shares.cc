#include "tools/trainer/launch/core_shares.h"

#include <hwloc.h>
#include <limits.h>

#include <cstddef>

namespace troupe::tools {

std::vector<std::vector<int>> ShareCores(int processes) {
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(processes));
  if (processes < 2) return shares;
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return shares;
  std::vector<hwloc_cpuset_t> sets(shares.size(), nullptr);
  if (hwloc_topology_load(topology) == 0) {
    hwloc_obj_t root = hwloc_get_root_obj(topology);
    hwloc_distrib(topology, &root, /*n_roots=*/1, sets.data(),
                  static_cast<unsigned>(processes), /*until=*/INT_MAX,
                  /*flags=*/0);
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (sets[i] == nullptr) continue;
    for (int core = hwloc_bitmap_first(sets[i]); core >= 0;
         core = hwloc_bitmap_next(sets[i], core)) {
      shares[i].push_back(core);
    }
    hwloc_bitmap_free(sets[i]);
  }
  hwloc_topology_destroy(topology);
  return shares;
}

}  // namespace troupe::tools
