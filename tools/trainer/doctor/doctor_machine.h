// What `trainer doctor` asks this machine.
//
//   TROUPE_ASSIGN_OR_RETURN(base::OwnedFd socket, ListenAt(29400));
//   std::vector<Finding> findings = CheckLimits();
//
// Threads: any. Cost: milliseconds; a tenth of a second where the driver of
// GPUs is opened.

#ifndef TOOLS_TRAINER_DOCTOR_DOCTOR_MACHINE_H_
#define TOOLS_TRAINER_DOCTOR_DOCTOR_MACHINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "base/owned_fd.h"
#include "tools/trainer/doctor/doctor_checks.h"

namespace troupe::tools {

// A socket that listens at `port` of every IPv4 address, and does not block.
absl::StatusOr<base::OwnedFd> ListenAt(int port);

// Limits, memory, cores, clock and GPUs.
std::vector<Finding> CheckLimits();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_MACHINE_H_
