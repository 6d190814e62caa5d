#include "tools/trainer/doctor/doctor_checks.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace troupe::tools {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// Number of open files that a process needs: its own, and a socket or two for
// each other process.
constexpr std::uint64_t kFilesNeeded = 512;
constexpr std::uint64_t kFilesWanted = 4096;
// Number of processes that a job needs. Threads count, and a rank has about
// eight.
constexpr std::uint64_t kProcessesNeeded = 128;
constexpr std::uint64_t kProcessesWanted = 1024;
// Locked memory with which Open MPI's fabrics are known to work. The default of
// many systems is 64 KiB or 8 MiB.
constexpr std::uint64_t kLockedWanted = 64 * kMiB;
// Shared memory that a job needs. A link between two processes of a host takes
// a few MiB.
constexpr std::uint64_t kMemoryNeeded = 64 * kMiB;
constexpr std::uint64_t kMemoryWanted = 512 * kMiB;
// Limit on the difference of clocks: certificates are valid from an hour before
// they were made.
constexpr absl::Duration kSkewProblem = absl::Hours(1);
constexpr absl::Duration kSkewWarning = absl::Seconds(2);
constexpr absl::Duration kTripWarning = absl::Milliseconds(5);
constexpr double kBandwidthWarning = 100e6 / 8;

std::string Amount(std::uint64_t bytes) {
  if (bytes == kNoLimit) return "no limit";
  if (bytes < kMiB) return absl::StrCat(bytes >> 10, " KiB");
  if (bytes < 1024 * kMiB) return absl::StrCat(bytes / kMiB, " MiB");
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1u << 30));
}

std::string AtMost(std::uint64_t limit) {
  return limit == kNoLimit ? "no limit" : absl::StrCat(limit, " at most");
}

Health Judge(std::uint64_t value, std::uint64_t needed, std::uint64_t wanted) {
  if (value < needed) return Health::kProblem;
  return value < wanted ? Health::kWarning : Health::kOk;
}

// Makes a finding. `advice` is used for warnings and problems only.
Finding Make(std::string what, Health health, std::string found,
             std::string advice) {
  if (health == Health::kOk) advice.clear();
  return {std::move(what), health, std::move(found), std::move(advice)};
}

bool IsLoopback(const std::string& address) {
  return absl::StartsWith(address, "127.") || address == "::1";
}

Finding CheckVersion(const std::string& host, const std::string& own,
                     const std::string& theirs) {
  return Make(absl::StrCat(host, " version"),
              own == theirs ? Health::kOk : Health::kProblem, theirs,
              absl::StrCat("this host has ", own,
                           ": install the same trainer on both"));
}

Finding CheckSkew(const std::string& host, absl::Duration skew) {
  const absl::Duration size = absl::AbsDuration(skew);
  const Health health = size > kSkewProblem   ? Health::kProblem
                        : size > kSkewWarning ? Health::kWarning
                                              : Health::kOk;
  return Make(absl::StrCat(host, " clock offset"), health,
              absl::StrCat(skew < absl::ZeroDuration() ? "" : "+",
                           absl::FormatDuration(
                               absl::Trunc(skew, absl::Microseconds(100)))),
              "certificates may count as not valid yet, or any more: start "
              "chrony or systemd-timesyncd on both hosts");
}

}  // namespace

Finding CheckAddresses(
    const std::string& host,
    const absl::StatusOr<std::vector<std::string>>& addresses,
    bool for_others) {
  const std::string what = absl::StrCat("name ", host);
  if (!addresses.ok()) {
    return Make(what, for_others ? Health::kProblem : Health::kWarning,
                std::string(addresses.status().message()),
                "add it to the DNS or to /etc/hosts, or use an address");
  }
  const std::string found = absl::StrJoin(*addresses, ", ");
  const bool is_own = absl::c_any_of(*addresses, IsLoopback);
  if (!is_own || host == "localhost" || IsLoopback(host)) {
    const bool mistaken = is_own && for_others;
    return Make(what, mistaken ? Health::kProblem : Health::kOk, found,
                "other hosts cannot come there: use this host's name");
  }
  return Make(what, for_others ? Health::kProblem : Health::kWarning, found,
              "this is an address of the machine itself, where no other host "
              "comes: give the name its real address in /etc/hosts (Debian "
              "writes 127.0.1.1), or use that address");
}

Finding CheckPort(int port, const absl::Status& bound) {
  return Make(absl::StrCat("port ", port),
              bound.ok() ? Health::kOk : Health::kProblem,
              bound.ok() ? "free here" : std::string(bound.message()),
              absl::StrCat("see who has it by \"ss -ltnp 'sport = :", port,
                           "'\", or give --master another port, from 1024 on"));
}

Finding CheckCertificateFolder(const std::string& folder,
                               const absl::Status& checked) {
  return Make("certificates", checked.ok() ? Health::kOk : Health::kProblem,
              checked.ok() ? absl::StrCat("in ", folder)
                           : std::string(checked.message()),
              "trainer certs makes new ones; every node needs those of one "
              "authority");
}

Finding CheckOpenFiles(std::uint64_t limit) {
  return Make("open files", Judge(limit, kFilesNeeded, kFilesWanted),
              AtMost(limit),
              absl::StrCat("ulimit -n ", kFilesWanted,
                           ", or nofile in /etc/security/limits.conf; a "
                           "process has two or more for each other one"));
}

Finding CheckProcesses(std::uint64_t limit) {
  return Make("threads", Judge(limit, kProcessesNeeded, kProcessesWanted),
              AtMost(limit),
              absl::StrCat("ulimit -u ", kProcessesWanted,
                           ", or pids of the container; a rank has about "
                           "eight"));
}

Finding CheckLockedMemory(std::uint64_t limit) {
  return Make("locked memory",
              limit < kLockedWanted ? Health::kWarning : Health::kOk,
              Amount(limit),
              "only InfiniBand and its kin, under Open MPI, need more: ulimit "
              "-l unlimited, or memlock in /etc/security/limits.conf");
}

Finding CheckSharedMemory(const absl::Status& memory_file,
                          std::uint64_t free_memory,
                          std::optional<std::uint64_t> dev_shm) {
  if (!memory_file.ok()) {
    return Make("shared memory", Health::kProblem,
                std::string(memory_file.message()),
                "the container forbids memfd_create: allow it, or set "
                "comm.transport = \"tcp\"");
  }
  const std::string found =
      absl::StrCat(Amount(free_memory), " of memory, ",
                   dev_shm ? Amount(*dev_shm) : "none", " in /dev/shm");
  const Health memory = Judge(free_memory, kMemoryNeeded, kMemoryWanted);
  if (memory != Health::kOk) {
    return Make("shared memory", memory, found,
                "end what uses it, or train fewer ranks on this host");
  }
  return Make(
      "shared memory",
      dev_shm.value_or(0) < kMemoryNeeded ? Health::kWarning : Health::kOk,
      found,
      "only Open MPI needs /dev/shm: docker run --shm-size=1g, or an "
      "emptyDir of medium Memory");
}

Finding CheckTransports(const std::vector<TransportFacts>& transports) {
  std::string found;
  for (const TransportFacts& each : transports) {
    if (!found.empty()) absl::StrAppend(&found, each.library ? "; " : ", ");
    absl::StrAppend(&found, each.name, " ", each.reach);
    if (!each.library) continue;
    absl::StrAppend(&found, ": ",
                    each.library->ok() ? absl::string_view(**each.library)
                                       : each.library->status().message());
  }
  return Make("transports", Health::kOk, std::move(found), "");
}

Finding CheckCores(const CoreFacts& facts) {
  std::string found = absl::StrCat(facts.allowed, " of ", facts.threads,
                                   " hardware threads (cores: ", facts.cores,
                                   ", packages: ", facts.packages,
                                   ", NUMA nodes: ", facts.numa_nodes, ")");
  return Make("cores",
              facts.allowed < facts.threads ? Health::kWarning : Health::kOk,
              std::move(found),
              "this process is bound to some (taskset, cgroup, or mpirun "
              "without --bind-to none): more ranks than these share them");
}

Finding CheckClock(bool synchronised) {
  return Make("clock", synchronised ? Health::kOk : Health::kWarning,
              synchronised ? "synchronised" : "nothing keeps it right",
              "start chrony or systemd-timesyncd; certificates have an hour's "
              "play");
}

std::vector<Finding> CheckPeer(const std::string& host,
                               const std::string& own_version,
                               const absl::StatusOr<PeerFacts>& facts) {
  if (!facts.ok()) {
    const bool reached = absl::IsFailedPrecondition(facts.status());
    const char* const advice =
        reached ? ""
        : absl::IsUnauthenticated(facts.status())
            ? "give both hosts certificates of one authority (trainer certs)"
            : "let firewall and routes pass this port";
    return {Make(absl::StrCat(host, " doctor"),
                 reached ? Health::kWarning : Health::kProblem,
                 std::string(facts.status().message()), advice)};
  }
  return {CheckVersion(host, own_version, facts->version),
          CheckSkew(host, facts->clock_skew)};
}

Finding CheckWay(const std::string& from, const std::string& to,
                 const absl::StatusOr<PeerFacts>& facts) {
  const std::string what = absl::StrCat(from, " to ", to);
  if (!facts.ok()) {
    return Make(what, Health::kProblem, std::string(facts.status().message()),
                absl::StrCat("look on ", from, " which address ", to,
                             " has there, and let firewall and routes between "
                             "the two pass this port"));
  }
  const bool slow = facts->bytes_per_second < kBandwidthWarning;
  const bool far = facts->round_trip > kTripWarning;
  return Make(what, slow || far ? Health::kWarning : Health::kOk,
              absl::StrFormat("%.0f us there and back, %.0f MB/s by one "
                              "encrypted connection",
                              absl::ToDoubleMicroseconds(facts->round_trip),
                              facts->bytes_per_second * 1e-6),
              far ? "each reduction takes several trips: use nodes that are "
                    "closer"
                  : "gradients pass here in every step: use a faster network");
}

std::vector<Finding> CheckPeerMachine(
    const std::string& host,
    const absl::StatusOr<std::vector<Finding>>& findings) {
  const std::string what = absl::StrCat(host, " machine");
  if (!findings.ok()) {
    return {Make(what, Health::kWarning,
                 std::string(findings.status().message()),
                 "start the doctor there anew, by the same trainer")};
  }
  std::vector<Finding> rows;
  for (const Finding& each : *findings) {
    if (each.health == Health::kOk) continue;
    rows.push_back(each);
    rows.back().what = absl::StrCat(host, " ", each.what);
  }
  if (rows.empty()) {
    rows.push_back({what, Health::kOk,
                    "limits, memory, transports, cores, clock, GPUs", ""});
  }
  return rows;
}

Finding CheckReach(const std::string& host, int port,
                   const absl::Status& reached) {
  const std::string what = absl::StrCat(host, " port ", port);
  if (absl::IsFailedPrecondition(reached)) {
    return {what, Health::kOk, "reached, and free", ""};
  }
  return Make(
      what, reached.ok() ? Health::kWarning : Health::kProblem,
      reached.ok() ? "somebody listens there" : std::string(reached.message()),
      reached.ok()
          ? "process 0 cannot listen there, unless it is a doctor that "
            "does and ends before"
          : "let firewall and routes pass this port");
}

Finding LeftOut() {
  return {"left out", Health::kWarning,
          "versions, clocks and limits of the other hosts, latency and "
          "bandwidth of every two",
          "make certificates by \"trainer certs\", start \"trainer doctor "
          "--listen --certs=DIR\" on each other host, and add --certs=DIR "
          "here"};
}

}  // namespace troupe::tools
