// Programs that run to their end, at the same time.
//
//   absl::Status status = RunPrograms({{"ip", "link"}, {"tc", "qdisc"}});
//
// What they say is kept, and is part of the error. They die with the thread
// that runs them.

#ifndef TOOLS_NETWORK_RUN_PROGRAMS_H_
#define TOOLS_NETWORK_RUN_PROGRAMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe::network {

// A program is looked for in PATH. Blocks until all have ended.
//   kUnavailable: one did not exit with 0; its words, and its last 2,000 bytes
//     of output.
absl::Status RunPrograms(const std::vector<std::vector<std::string>>& programs);

}  // namespace troupe::network

#endif  // TOOLS_NETWORK_RUN_PROGRAMS_H_
