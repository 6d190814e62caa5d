// Reads the facts of this machine for `trainer doctor`.
//
//   TROUPE_ASSIGN_OR_RETURN(base::OwnedFd socket, ListenAt(29400));
//   std::vector<Finding> findings = CheckLimits();
//
// Threads: any. Cost: milliseconds; a tenth of a second if the GPU driver is
// opened.

#ifndef TOOLS_TRAINER_DOCTOR_DOCTOR_MACHINE_H_
#define TOOLS_TRAINER_DOCTOR_DOCTOR_MACHINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "base/files/owned_fd.h"
#include "tools/trainer/doctor/doctor_checks.h"

namespace troupe::tools {

// Returns a non-blocking socket that listens at `port` of every IPv4 address.
absl::StatusOr<base::OwnedFd> ListenAt(int port);

// Returns the findings on limits, memory, cores, clock and GPUs.
std::vector<Finding> CheckLimits();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_MACHINE_H_
