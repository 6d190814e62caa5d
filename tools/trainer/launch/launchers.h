// Who started this process, which of the job's processes it is, and where they
// meet: as torchrun, Slurm, Open MPI, Kubernetes or `trainer launch` say in the
// environment, and options on the command line.
//
//   const Variables environment = ReadEnvironment(environ);
//   Variables options;
//   options.Set("--master", "n1:29400");
//   TROUPE_ASSIGN_OR_RETURN(Placement placement,
//                           FindPlacement(environment, options));
//   std::cout << placement.ToString();
//   // launched by Slurm: process 1 of 2 on node n2
//
// Of several launchers inside each other the innermost counts: `trainer
// launch`, then torchrun, Open MPI, Slurm, Kubernetes. An option has a variable
// that says the same (docs/launching.md lists all); where both are set, or a
// launcher says it too, they must agree.
//
// Reads no file and asks no network. Threads: any.

#ifndef TOOLS_TRAINER_LAUNCH_LAUNCHERS_H_
#define TOOLS_TRAINER_LAUNCH_LAUNCHERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/tls/certificates.h"
#include "tools/trainer/launch/variables.h"
#include "tools/trainer/terminal/host_port.h"

namespace troupe::tools {

// How the processes of a job find each other.
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
  // Of those on this node.
  int local_process = 0;
  int local_processes = 1;
  // -1 where the launcher numbers no nodes (Open MPI).
  int node = 0;
  int nodes = 1;
  int ranks_per_process = 0;  // 0: nobody said

  Meeting meeting = Meeting::kNone;
  HostPort master;
  std::string store_key;  // of kTorchrunStore: under which the address stands

  // Empty paths: none were named.
  base::tls::CertificateFiles certificates;

  std::string found_by;    // "Slurm"; empty: nobody, this is a process alone
  bool by_mpirun = false;  // which has numbered the processes
  std::string node_name;   // "n2", where the launcher says it
  // A sentence for the user, where all is well and yet perhaps not as meant.
  std::string hint;

  // One line without its end.
  std::string ToString() const;
};

// What `trainer launch` sets for its children. The first five are set together;
// users may set the last ones, as they may set options.
inline constexpr char kProcessVariable[] = "TROUPE_PROCESS";
inline constexpr char kLocalProcessVariable[] = "TROUPE_LOCAL_PROCESS";
inline constexpr char kLocalProcessesVariable[] = "TROUPE_LOCAL_PROCESSES";
inline constexpr char kNodeVariable[] = "TROUPE_NODE";
inline constexpr char kNodesVariable[] = "TROUPE_NODES";
inline constexpr char kProcessesVariable[] = "TROUPE_PROCESSES";
inline constexpr char kMasterVariable[] = "TROUPE_MASTER";
inline constexpr char kCertsVariable[] = "TROUPE_CERTS";
inline constexpr char kRanksPerProcessVariable[] = "TROUPE_RANKS_PER_PROCESS";
// Open files that hold authority, certificate and key: "5,6,7".
inline constexpr char kCertFilesVariable[] = "TROUPE_CERT_FDS";

// `options` may have --process, --processes, --master, --certs.
//   kInvalidArgument: what is said contradicts itself, or is not enough; names
//     the variables or options, with their values.
absl::StatusOr<Placement> FindPlacement(const Variables& environment,
                                        const Variables& options);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_LAUNCHERS_H_
