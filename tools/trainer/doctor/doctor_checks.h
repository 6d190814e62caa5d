// What `trainer doctor` thinks of what it has found. Pure: nothing here asks
// the machine.
//
//   Finding finding = CheckOpenFiles(/*limit=*/256);
//   std::cout << FormatFindings({finding});
//   // open files   problem  256 at most
//   //              do: ulimit -n 4096, ...

#ifndef TOOLS_TRAINER_DOCTOR_DOCTOR_CHECKS_H_
#define TOOLS_TRAINER_DOCTOR_DOCTOR_CHECKS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/trainer/doctor/doctor_findings.h"

namespace troupe::tools {

inline constexpr std::uint64_t kNoLimit =
    std::numeric_limits<std::uint64_t>::max();

// `addresses` are what a name stands for. Where others must come by it
// (`for_others`) an address of this machine alone is a problem: Debian gives a
// host's own name 127.0.1.1.
Finding CheckAddresses(
    const std::string& host,
    const absl::StatusOr<std::vector<std::string>>& addresses, bool for_others);
// `bound` is what came of listening there.
Finding CheckPort(int port, const absl::Status& bound);
Finding CheckCertificateFolder(const std::string& folder,
                               const absl::Status& checked);

// Limits of this process, as getrlimit() has them.
Finding CheckOpenFiles(std::uint64_t limit);
Finding CheckProcesses(std::uint64_t limit);
Finding CheckLockedMemory(std::uint64_t limit);

// Links between processes of a host are files of memory: `memory_file` says
// whether one could be made. `dev_shm` is what is free in /dev/shm, if anything
// is there: Open MPI has its own memory in it.
Finding CheckSharedMemory(const absl::Status& memory_file,
                          std::uint64_t free_memory,
                          std::optional<std::uint64_t> dev_shm);

// How processes may exchange tensors; `mpi` names the MPI that is here.
Finding CheckTransports(const absl::StatusOr<std::string>& mpi);

struct CoreFacts {
  int allowed = 0;  // of this process
  int cores = 0;    // of the machine, each with one hardware thread or more
  int threads = 0;
  int packages = 0;
  int numa_nodes = 0;
};
Finding CheckCores(const CoreFacts& facts);

// Whether the kernel says that something keeps the clock right.
Finding CheckClock(bool synchronised);

// What a doctor on another host says, and how far away it is.
struct PeerFacts {
  std::string version;
  absl::Duration clock_skew;  // of its clock to this one's; half a trip at most
  absl::Duration round_trip;  // the median
  double bytes_per_second = 0;
};
// The rows on `host`: version and clock, or why there are none.
std::vector<Finding> CheckPeer(const std::string& host,
                               const std::string& own_version,
                               const absl::StatusOr<PeerFacts>& facts);
// The way from one host to another, or why there is none.
Finding CheckWay(const std::string& from, const std::string& to,
                 const absl::StatusOr<PeerFacts>& facts);
// One row, where a host's own doctor finds nothing to mend; else what there is.
std::vector<Finding> CheckPeerMachine(
    const std::string& host,
    const absl::StatusOr<std::vector<Finding>>& findings);
// Where there are no certificates to ask by: `reached` is what came of
// connecting to the port of `host`. kFailedPrecondition: nobody listens there,
// as it should be.
Finding CheckReach(const std::string& host, int port,
                   const absl::Status& reached);
// What is left out then, and how to get it.
Finding LeftOut();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_CHECKS_H_
