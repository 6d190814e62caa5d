// Runs programs at the same time, until all have ended.
//
//   absl::Status status = RunPrograms({{"ip", "link"}, {"tc", "qdisc"}});
//
// Their output is kept for the error. They are killed if the thread that runs
// them ends.

#ifndef TOOLS_NETWORK_RUN_PROGRAMS_H_
#define TOOLS_NETWORK_RUN_PROGRAMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe::network {

// Finds each program in PATH. Blocks until all have ended.
//   kUnavailable: one did not exit with 0; its words, and its last 2,000 bytes
//     of output.
absl::Status RunPrograms(const std::vector<std::vector<std::string>>& programs);

}  // namespace troupe::network

#endif  // TOOLS_NETWORK_RUN_PROGRAMS_H_
