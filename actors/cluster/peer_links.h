// The links of a process to all others, by the transports that the job asks
// for.
//
//   TROUPE_ASSIGN_OR_RETURN(PeerLinks peers,
//                           ConnectPeers(options, welcome, client));
//   std::cout << DescribeTransports(peers.links);
//   // shm (1 link), tcp (2 links)

#ifndef ACTORS_CLUSTER_PEER_LINKS_H_
#define ACTORS_CLUSTER_PEER_LINKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/spec/cluster_options.h"
#include "comm/link.h"
#include "comm/mpi/mpi_process.h"
#include "comm/store.h"

namespace troupe::actors {

struct PeerLinks {
  // By process; null for this one.
  std::vector<std::unique_ptr<comm::Link>> links;
  // Null: the transport is another one. Where the job fails it is given up.
  std::unique_ptr<comm::MpiProcess> mpi;
};

// Errors: those of comm::ConnectLinks, or of comm::MpiProcess::Start();
// kFailedPrecondition: MPI numbers the processes in another way, or has others.
absl::StatusOr<PeerLinks> ConnectPeers(const ClusterOptions& options,
                                       const Welcome& welcome,
                                       comm::Store& store);

// How many links there are of each transport, by its name.
std::string DescribeTransports(
    const std::vector<std::unique_ptr<comm::Link>>& links);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_PEER_LINKS_H_
