// How much memory this process has.
//
//   double mib = PeakMemoryMiB();

#ifndef TOOLS_PROFILE_PROCESS_MEMORY_H_
#define TOOLS_PROFILE_PROCESS_MEMORY_H_

namespace troupe::tools {

// Largest resident memory of this process so far, and that of now.
double PeakMemoryMiB();
double MemoryMiB();

}  // namespace troupe::tools

#endif  // TOOLS_PROFILE_PROCESS_MEMORY_H_
