// Finds which launcher started this process, which of the job's processes it
// is, and the address at which they meet, from the environment that torchrun,
// Slurm, Open MPI, Kubernetes or `trainer launch` set, and from command-line
// options.
//
//   const Variables environment = ReadEnvironment(environ);
//   Variables options;
//   options.Set("--master", "n1:29400");
//   TROUPE_ASSIGN_OR_RETURN(Placement placement,
//                           FindPlacement(environment, options));
//   std::cout << placement.ToString();
//   // launched by Slurm: process 1 of 2 on node n2
//
// The innermost of several nested launchers counts: `trainer launch`, then
// torchrun, Open MPI, Slurm, Kubernetes. Each option also has a variable
// (docs/launching.md lists all). If an option, its variable and the launcher
// set the same thing, they must agree.
//
// Reads no file and uses no network. Threads: any.

#ifndef ACTORS_LAUNCHERS_LAUNCHERS_H_
#define ACTORS_LAUNCHERS_LAUNCHERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "actors/launchers/variables.h"
#include "base/host_port.h"
#include "base/tls/certificate_files.h"

namespace troupe::actors {

// Ways in which the processes of a job find each other.
enum class Meeting {
  kNone,     // there is only one
  kAddress,  // process 0 listens at `master`, the others call there
  // `master` is taken by torchrun's own store. Process 0 listens anywhere and
  // publishes its address there (torchrun_store.h).
  kTorchrunStore,
};

struct Placement {
  int process = 0;
  int processes = 1;
  // Index among the processes on this node, and their number.
  int local_process = 0;
  int local_processes = 1;
  // Index of the node; -1 if the launcher does not number nodes (Open MPI).
  int node = 0;
  int nodes = 1;
  int ranks_per_process = 0;  // 0: not set

  Meeting meeting = Meeting::kNone;
  base::HostPort master;
  std::string store_key;  // key of the address, if kTorchrunStore

  // Paths are empty if none were set.
  base::tls::CertificateFiles certificates;

  std::string found_by;    // "Slurm"; empty: no launcher, one process
  bool by_mpirun = false;  // whether mpirun numbers the processes
  std::string node_name;   // "n2"; empty if the launcher does not set it
  // Sentence for the user about a valid setting that may not be intended;
  // empty: none.
  std::string hint;

  // One line without its end.
  std::string ToString() const;
};

// Variables that `trainer launch` sets for its children. The first five are set
// together; users may set the last ones in place of options.
inline constexpr char kProcessVariable[] = "TROUPE_PROCESS";
inline constexpr char kLocalProcessVariable[] = "TROUPE_LOCAL_PROCESS";
inline constexpr char kLocalProcessesVariable[] = "TROUPE_LOCAL_PROCESSES";
inline constexpr char kNodeVariable[] = "TROUPE_NODE";
inline constexpr char kNodesVariable[] = "TROUPE_NODES";
inline constexpr char kProcessesVariable[] = "TROUPE_PROCESSES";
inline constexpr char kMasterVariable[] = "TROUPE_MASTER";
inline constexpr char kCertsVariable[] = "TROUPE_CERTS";
inline constexpr char kRanksPerProcessVariable[] = "TROUPE_RANKS_PER_PROCESS";
// Descriptors of open files with authority, certificate and key: "5,6,7".
inline constexpr char kCertFilesVariable[] = "TROUPE_CERT_FDS";

// Finds the placement. `options` may have --process, --processes, --master and
// --certs.
//   kInvalidArgument: variables or options contradict each other, or are not
//     enough; names them, with their values.
absl::StatusOr<Placement> FindPlacement(const Variables& environment,
                                        const Variables& options);

}  // namespace troupe::actors

#endif  // ACTORS_LAUNCHERS_LAUNCHERS_H_
