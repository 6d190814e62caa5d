// Number of cores that this process may run on; in a container it is below the
// machine's.
//
//   const int threads = std::max(1, base::AvailableCores() / ranks_here);
//
// It is the smaller of the number of cores in the process's affinity mask
// (taskset, Slurm) and the processor time that its control groups grant (docker
// --cpus, Kubernetes limits), rounded up to whole cores. A limit that cannot be
// read is ignored.
//
// Threads: any. Cost: some file reads, below a millisecond; call it once.

#ifndef BASE_CPU_CORES_H_
#define BASE_CPU_CORES_H_

#include <string>

namespace troupe::base {

// Returns at least 1.
int AvailableCores();

// Returns the processor time that the control groups of this process grant, in
// cores, at least 1; 0: no limit. Supports both versions of control groups, and
// limits of parent groups. `root` is a prefix of the paths in /proc and /sys;
// tests pass a folder.
int ControlGroupCores(const std::string& root);

}  // namespace troupe::base

#endif  // BASE_CPU_CORES_H_
