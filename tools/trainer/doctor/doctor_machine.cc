#include "tools/trainer/doctor/doctor_machine.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "comm/connect/transports.h"
#include "hwloc.h"
#include "tools/trainer/doctor/doctor_gpus.h"

namespace troupe::tools {
namespace {

std::uint64_t LimitOf(__rlimit_resource which) {
  rlimit limit = {};
  if (::getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return kNoLimit;
  }
  return limit.rlim_cur;
}

// Makes a memory file of one page, as links do.
absl::Status TryMemoryFile() {
  const base::OwnedFd file(::memfd_create("doctor", MFD_CLOEXEC));
  if (file.valid() && ::ftruncate(file.get(), 4096) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "memfd_create");
}

// Returns the memory that programs can still allocate, including what the
// system would reclaim for them.
std::uint64_t FreeMemory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib << 10;
    std::getline(file, unit);
  }
  return kNoLimit;
}

std::optional<std::uint64_t> FreeDevShm() {
  struct statvfs info = {};
  if (::statvfs("/dev/shm", &info) != 0) return std::nullopt;
  return std::uint64_t{info.f_bavail} * info.f_frsize;
}

CoreFacts ReadCores() {
  CoreFacts facts;
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return facts;
  // Includes cores that this process may not use.
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(topology) == 0) {
    facts.cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    facts.threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    facts.packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
    facts.numa_nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
  }
  hwloc_topology_destroy(topology);
  cpu_set_t allowed;
  facts.allowed = ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                      ? CPU_COUNT(&allowed)
                      : facts.threads;
  return facts;
}

std::vector<TransportFacts> ReadTransports() {
  std::vector<TransportFacts> facts;
  for (const comm::TransportRule& rule : comm::Transports()) {
    if (rule.reach.empty()) continue;
    facts.push_back({std::string(rule.name), std::string(rule.reach), {}});
    if (rule.version != nullptr) facts.back().library = rule.version();
  }
  return facts;
}

bool ClockIsSynchronised() {
  timex state = {};
  return ::adjtimex(&state) != TIME_ERROR;
}

}  // namespace

absl::StatusOr<base::OwnedFd> ListenAt(int port) {
  base::OwnedFd socket(
      ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return absl::ErrnoToStatus(errno, "socket");
  // Set as process 0 sets it: connections that have just ended do not block the
  // port.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any),
             sizeof(any)) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("port ", port));
  }
  return socket;
}

std::vector<Finding> CheckLimits() {
  std::vector<Finding> findings = {
      CheckOpenFiles(LimitOf(RLIMIT_NOFILE)),
      CheckProcesses(LimitOf(RLIMIT_NPROC)),
      CheckLockedMemory(LimitOf(RLIMIT_MEMLOCK)),
      CheckSharedMemory(TryMemoryFile(), FreeMemory(), FreeDevShm()),
      CheckTransports(ReadTransports()),
      CheckCores(ReadCores()),
      CheckClock(ClockIsSynchronised())};
  for (Finding& each : CheckGpus(ReadGpus())) {
    findings.push_back(std::move(each));
  }
  return findings;
}

}  // namespace troupe::tools
