// The cores of this machine, shared out among processes.
//
//   for (const std::vector<int>& cores : ShareCores(/*processes=*/2)) {
//     Show(cores);  // {0, 1, 2, 3}, then {4, 5, 6, 7}
//   }
//
// Of the cores that this process may run on, each gets some that lie together:
// of one package, one NUMA node, one cache, as far as the numbers allow. Where
// there are fewer cores than processes, several share one.
//
// Cost: a millisecond (hwloc reads the topology). Threads: any.

#ifndef TOOLS_TRAINER_LAUNCH_CORE_SHARES_H_
#define TOOLS_TRAINER_LAUNCH_CORE_SHARES_H_

#include <vector>

namespace troupe::tools {

// The numbers that the system gives to the cores of each process. An empty one
// stands for all of them: also where the topology cannot be read.
std::vector<std::vector<int>> ShareCores(int processes);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_CORE_SHARES_H_
