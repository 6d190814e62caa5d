// Measures the memory of this process.
//
//   double mib = PeakMemoryMiB();

#ifndef TOOLS_PROFILE_PROCESS_MEMORY_H_
#define TOOLS_PROFILE_PROCESS_MEMORY_H_

namespace troupe::tools {

// Return the peak and the current resident memory of this process.
double PeakMemoryMiB();
double MemoryMiB();

}  // namespace troupe::tools

#endif  // TOOLS_PROFILE_PROCESS_MEMORY_H_
