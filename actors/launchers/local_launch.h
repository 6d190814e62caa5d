// Parts of a launcher that starts the processes of a job on this node: the
// variables in which FindPlacement() reads a process's place, and certificates
// that no disk holds.
//
//   JobCertificates certificates;
//   TROUPE_RETURN_IF_ERROR(certificates.Make(absl::Now()));
//   Variables set = LauncherVariables(placement);
//   certificates.AddTo(set);
//   child.environment = EnvironmentWith(environ, set);
//   child.kept_files = certificates.fds();
//
// Threads: any.

#ifndef ACTORS_LAUNCHERS_LOCAL_LAUNCH_H_
#define ACTORS_LAUNCHERS_LOCAL_LAUNCH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "actors/launchers/launchers.h"
#include "actors/launchers/variables.h"
#include "base/files/owned_fd.h"

namespace troupe::actors {

// Returns the variables of a process at this place, without certificates.
Variables LauncherVariables(const Placement& placement);

// Adds the variables that torchrun sets, for programs that know no others.
void AddTorchVariables(const Placement& placement, Variables& set);

// Returns the environment of a process: entries "NAME=value" of `environment`,
// overridden by `set`.
std::vector<std::string> EnvironmentWith(const char* const* environment,
                                         const Variables& set);

// Open files with authority, certificate and key of a job on this node only.
class JobCertificates {
 public:
  // Makes them, valid for a year.
  absl::Status Make(absl::Time now);

  // Adds the variable that names them; none before Make().
  void AddTo(Variables& set) const;
  // Descriptors that the processes inherit.
  std::vector<int> fds() const;

 private:
  std::vector<base::OwnedFd> files_;
};

}  // namespace troupe::actors

#endif  // ACTORS_LAUNCHERS_LOCAL_LAUNCH_H_
