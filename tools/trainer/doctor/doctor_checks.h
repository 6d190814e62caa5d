// The judgements of `trainer doctor`: findings from facts. Pure: nothing here
// reads the machine's state.
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

// Checks the addresses that a name resolves to. If other hosts must connect to
// it (`for_others`), a loopback address is a problem: Debian resolves a host's
// own name to 127.0.1.1.
Finding CheckAddresses(
    const std::string& host,
    const absl::StatusOr<std::vector<std::string>>& addresses, bool for_others);
// `bound` is the result of listening at the port.
Finding CheckPort(int port, const absl::Status& bound);
Finding CheckCertificateFolder(const std::string& folder,
                               const absl::Status& checked);

// Checks limits of this process, as getrlimit() returns them.
Finding CheckOpenFiles(std::uint64_t limit);
Finding CheckProcesses(std::uint64_t limit);
Finding CheckLockedMemory(std::uint64_t limit);

// Checks the shared memory for links between processes of a host. `memory_file`
// is the result of making a memory file. `dev_shm` is the free space in
// /dev/shm, which Open MPI uses; none if it does not exist.
Finding CheckSharedMemory(const absl::Status& memory_file,
                          std::uint64_t free_memory,
                          std::optional<std::uint64_t> dev_shm);

// A transport of comm/connect/transports.h.
struct TransportFacts {
  std::string name;
  std::string reach;  // TransportRule::reach
  // Name and version of its library, or why it is not available; none if the
  // transport needs no library.
  std::optional<absl::StatusOr<std::string>> library;
};
// Lists the transports that processes may use; those with a library come last.
Finding CheckTransports(const std::vector<TransportFacts>& transports);

struct CoreFacts {
  int allowed = 0;  // cores that this process may use
  int cores = 0;    // cores of the machine, of one or more threads
  int threads = 0;
  int packages = 0;
  int numa_nodes = 0;
};
Finding CheckCores(const CoreFacts& facts);

// Checks the clock. `synchronised`: whether the kernel reports it as such.
Finding CheckClock(bool synchronised);

// Version, clock and connection of a doctor on another host.
struct PeerFacts {
  std::string version;
  absl::Duration clock_skew;  // error: at most half a round trip
  absl::Duration round_trip;  // the median
  double bytes_per_second = 0;
};
// Returns the rows on `host`: version and clock, or why they are unknown.
std::vector<Finding> CheckPeer(const std::string& host,
                               const std::string& own_version,
                               const absl::StatusOr<PeerFacts>& facts);
// Returns the row on the connection from one host to another, or on its
// failure.
Finding CheckWay(const std::string& from, const std::string& to,
                 const absl::StatusOr<PeerFacts>& facts);
// Returns one row if a host's own doctor finds no problem; else its problems.
std::vector<Finding> CheckPeerMachine(
    const std::string& host,
    const absl::StatusOr<std::vector<Finding>>& findings);
// Checks a host that cannot be questioned for lack of certificates. `reached`
// is the result of connecting to the port of `host`; kFailedPrecondition, which
// means that nothing listens there, is the good one.
Finding CheckReach(const std::string& host, int port,
                   const absl::Status& reached);
// Returns the row on the checks that are omitted then, and how to get them.
Finding LeftOut();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_CHECKS_H_
