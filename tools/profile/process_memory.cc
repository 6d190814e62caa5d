#include "tools/profile/process_memory.h"

#include <fstream>
#include <string>

namespace troupe::tools {
namespace {

// Returns a field of /proc/self/status. getrusage() would not do: its peak
// includes that of the process that started this one.
double StatusMiB(const char* field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kib = 0;
  while (status >> word) {
    if (word == field) status >> kib;
  }
  return kib / 1024;
}

}  // namespace

double PeakMemoryMiB() { return StatusMiB("VmHWM:"); }
double MemoryMiB() { return StatusMiB("VmRSS:"); }

}  // namespace troupe::tools
