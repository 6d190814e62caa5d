#include "tools/profile/process_memory.h"

#include <fstream>
#include <string>

namespace troupe::tools {
namespace {

// Memory of this program alone: getrusage() counts that of whoever started it,
// too.
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
