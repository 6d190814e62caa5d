// `trainer doctor`: whether this host, and those beside it, can run a job.
//
//   DoctorOptions options;
//   options.hosts = {"n1", "n2"};
//   options.certs = "certs";
//   const std::vector<Finding> findings = Examine(options, Version());
//   std::cout << FormatFindings(findings);

#ifndef TOOLS_TRAINER_DOCTOR_DOCTOR_COMMAND_H_
#define TOOLS_TRAINER_DOCTOR_DOCTOR_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/trainer/doctor/doctor_checks.h"

namespace troupe::tools {

struct DoctorOptions {
  bool help = false;
  bool listen = false;
  std::vector<std::string> hosts;  // empty: only this one
  int port = 29400;
  std::string certs;  // folder; empty: none
  // Axes of a mesh (doctor_mesh.h), and the processes of each host that would
  // have its ranks; empty: none.
  std::string mesh;
  int processes = 1;
};

// Parses what follows `doctor` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<DoctorOptions> ParseDoctor(
    const std::vector<std::string>& arguments);

std::string DoctorHelp();

// Examines this host and `options.hosts`. Blocks for ten seconds for each host
// that does not answer.
std::vector<Finding> Examine(const DoctorOptions& options,
                             const std::string& version);

// Answers other doctors until the program is killed. Returns only an error that
// prevents it.
absl::Status ListenForDoctors(const DoctorOptions& options,
                              const std::string& version);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_COMMAND_H_
