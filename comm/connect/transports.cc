#include "comm/connect/transports.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/connect/connect_links.h"
#include "comm/mpi/mpi_process.h"

namespace troupe::comm {
namespace {

absl::StatusOr<PeerLinks> ConnectBySockets(const ConnectOptions& options,
                                           Store& store) {
  PeerLinks peers;
  TROUPE_ASSIGN_OR_RETURN(peers.links, ConnectLinks(options, store));
  return peers;
}

//   kFailedPrecondition: MPI's ranks or its number of processes differ from the
//     options'.
//   Other codes: errors of MpiProcess.
absl::StatusOr<PeerLinks> ConnectByMpi(const ConnectOptions& options,
                                       Store& store) {
  TROUPE_ASSIGN_OR_RETURN(
      std::shared_ptr<MpiProcess> mpi,
      MpiProcess::Start(options.timeout, [&store] { return store.Check(); }));
  if (mpi->process() != options.process ||
      mpi->processes() != options.processes) {
    const absl::Status why = absl::FailedPreconditionError(absl::StrCat(
        "process ", options.process, " of ", options.processes, " is rank ",
        mpi->process(), " of ", mpi->processes(),
        " in MPI_COMM_WORLD; one mpirun must start all processes of the job, "
        "and nothing else may number them"));
    mpi->GiveUp(why);
    return why;
  }
  PeerLinks peers;
  // One that is too large for MPI stays too large.
  const auto generation = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      options.generation, std::numeric_limits<std::uint32_t>::max()));
  TROUPE_ASSIGN_OR_RETURN(peers.links, mpi->MakeLinks(generation));
  peers.give_up = [mpi](const absl::Status& why) { mpi->GiveUp(why); };
  return peers;
}

constexpr TransportRule kRules[] = {
    {Transport::kAuto, "auto",
     "\"auto\" shares memory on one host and takes TCP between hosts",
     /*reach=*/"", /*shares_memory=*/true, /*by_mpirun=*/false, /*library=*/"",
     /*version=*/nullptr, &ConnectBySockets},
    {Transport::kShm, "shm", "through shared memory", "on this host",
     /*shares_memory=*/true, /*by_mpirun=*/false, /*library=*/"",
     /*version=*/nullptr, &ConnectBySockets},
    {Transport::kTcp, "tcp", "by TCP", "to others", /*shares_memory=*/false,
     /*by_mpirun=*/false, /*library=*/"", /*version=*/nullptr,
     &ConnectBySockets},
    {Transport::kMpi, "mpi", "by the MPI of the mpirun that starts them",
     "where mpirun starts the job", /*shares_memory=*/false,
     /*by_mpirun=*/true, "MPI", &MpiProcess::Version, &ConnectByMpi},
};

constexpr bool RowsStandInOrder() {
  int number = 0;
  for (const TransportRule& rule : kRules) {
    if (static_cast<int>(rule.transport) != number++) return false;
  }
  return true;
}
static_assert(RowsStandInOrder(), "one row for each transport, in their order");

}  // namespace

absl::Span<const TransportRule> Transports() { return kRules; }

const TransportRule& RuleOf(Transport transport) {
  return Transports()[static_cast<std::size_t>(transport)];
}

const TransportRule* FindTransport(absl::string_view name) {
  for (const TransportRule& rule : kRules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

std::vector<std::string> TransportNames() {
  std::vector<std::string> names;
  for (const TransportRule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

}  // namespace troupe::comm
