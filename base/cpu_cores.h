// How many cores this process may run on, which in a container is less than
// the machine has.
//
//   const int threads = std::max(1, base::AvailableCores() / ranks_here);
//
// It is the smaller one of the cores in the process's affinity mask
// (taskset, Slurm) and of the processor time that its control groups grant
// (docker --cpus, Kubernetes limits), rounded up to whole cores. A limit that
// cannot be read is no limit.
//
// Threads: any. Cost: some file reads, below a millisecond; ask once.

#ifndef BASE_CPU_CORES_H_
#define BASE_CPU_CORES_H_

#include <string>

namespace troupe::base {

// At least 1.
int AvailableCores();

// Cores' worth of processor time that the control groups of this process
// grant, at least 1; 0: no limit. Both versions of control groups, a limit of a
// group above included. `root` stands before the paths of /proc and /sys; tests
// name a folder.
int ControlGroupCores(const std::string& root);

}  // namespace troupe::base

#endif  // BASE_CPU_CORES_H_
