// Connects a process to all others, by the transport that the job's options
// select.
//
//   TROUPE_ASSIGN_OR_RETURN(comm::PeerLinks peers,
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
#include "comm/connect/transports.h"
#include "comm/link.h"
#include "comm/store.h"

namespace troupe::actors {

// Errors: those of the transport's TransportRule::connect.
absl::StatusOr<comm::PeerLinks> ConnectPeers(const ClusterOptions& options,
                                             const Welcome& welcome,
                                             comm::Store& store);

// Returns the number of links of each transport, as in the example above.
std::string DescribeTransports(
    const std::vector<std::unique_ptr<comm::Link>>& links);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_PEER_LINKS_H_
