#include "actors/cluster/peer_links.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/cluster/host_address.h"
#include "base/check.h"
#include "comm/connect/connect_links.h"

namespace troupe::actors {
namespace {

absl::StatusOr<PeerLinks> ConnectByMpi(const ClusterOptions& options,
                                       const Welcome& welcome,
                                       comm::Store& store) {
  PeerLinks peers;
  TROUPE_ASSIGN_OR_RETURN(
      peers.mpi, comm::MpiProcess::Start(comm::ConnectOptions().timeout,
                                         [&store] { return store.Check(); }));
  const int rank = peers.mpi->process();
  const int size = peers.mpi->processes();
  if (rank != options.process || size != options.processes) {
    const absl::Status why = absl::FailedPreconditionError(absl::StrCat(
        "process ", options.process, " of ", options.processes, " is rank ",
        rank, " of ", size,
        " in MPI_COMM_WORLD; one mpirun must start all processes of the job, "
        "and nothing else may number them"));
    peers.mpi->GiveUp(why);
    return why;
  }
  TROUPE_ASSIGN_OR_RETURN(peers.links,
                          peers.mpi->MakeLinks(welcome.generation));
  return peers;
}

}  // namespace

absl::StatusOr<PeerLinks> ConnectPeers(const ClusterOptions& options,
                                       const Welcome& welcome,
                                       comm::Store& store) {
  if (options.transport == Transport::kMpi) {
    return ConnectByMpi(options, welcome, store);
  }
  comm::ConnectOptions connect;
  connect.process = options.process;
  connect.processes = options.processes;
  connect.transport = options.transport;
  connect.generation = welcome.generation;
  if (options.encrypt_data) connect.tls = options.certificates;
  connect.key_prefix = absl::StrCat("links/", welcome.generation);
  if (welcome.token.size() != connect.token.size()) {
    return absl::InternalError("process 0 sent a token of another length");
  }
  std::copy(welcome.token.begin(), welcome.token.end(), connect.token.begin());
  // The others can reach this process at the address from which it reaches
  // process 0.
  TROUPE_ASSIGN_OR_RETURN(
      connect.bind_address,
      options.data_host.empty()
          ? LocalAddressTo(options.master_host, options.master_port)
          : absl::StatusOr<std::string>(options.data_host));
  PeerLinks peers;
  TROUPE_ASSIGN_OR_RETURN(peers.links, comm::ConnectLinks(connect, store));
  return peers;
}

std::string DescribeTransports(
    const std::vector<std::unique_ptr<comm::Link>>& links) {
  std::map<std::string, int> counts;
  for (const auto& link : links) {
    if (link == nullptr) continue;
    // "tcp to process 3 at ..."
    const std::string name = link->ToString();
    ++counts[name.substr(0, name.find(' '))];
  }
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& each) {
    absl::StrAppend(out, each.first, " (", each.second,
                    each.second == 1 ? " link)" : " links)");
  });
}

}  // namespace troupe::actors
