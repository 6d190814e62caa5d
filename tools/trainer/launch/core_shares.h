// The cores of this machine, shared out among processes.
//
//   for (const std::vector<int>& cores : ShareCores(/*processes=*/2)) {
//     Show(cores);  // {0, 1, 2, 3}, then {4, 5, 6, 7}
//   }
//
// The cores that this process may run on are divided so that those of one
// process share a package, a NUMA node and a cache as far as the numbers allow.
// If there are fewer cores than processes, several processes share one.
//
// Cost: a millisecond (hwloc reads the topology). Threads: any.

#ifndef TOOLS_TRAINER_LAUNCH_CORE_SHARES_H_
#define TOOLS_TRAINER_LAUNCH_CORE_SHARES_H_

#include <vector>

namespace troupe::tools {

// Returns the system's numbers of the cores of each process. An empty list
// means all cores; all lists are empty if the topology cannot be read.
std::vector<std::vector<int>> ShareCores(int processes);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_CORE_SHARES_H_
