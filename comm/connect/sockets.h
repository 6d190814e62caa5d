// Sockets to listen on and to connect, none of which ever blocks.
//
//   TROUPE_ASSIGN_OR_RETURN(Listener listener, ListenTcp("127.0.0.1"));
//   TROUPE_ASSIGN_OR_RETURN(base::OwnedFd socket,
//                           ConnectTcp(listener.name, /*attempt=*/0));
//
// Threads: any. A host's name is looked up by the system's resolver, which does
// block; numbers never are.

#ifndef COMM_CONNECT_SOCKETS_H_
#define COMM_CONNECT_SOCKETS_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/owned_fd.h"

namespace troupe::comm {

struct Listener {
  base::OwnedFd socket;
  // "127.0.0.1:40112", "[::1]:40112"; of a Unix socket "00a1f".
  std::string name;
};

// On a port that the system chooses. `address` is a number of this host.
absl::StatusOr<Listener> ListenTcp(const std::string& address);
// On an abstract Unix socket whose name the system chooses: it is in no file
// system, and gone with its process.
absl::StatusOr<Listener> ListenUnix();

// The next connection; none: no descriptor.
base::OwnedFd Accept(const Listener& listener);

// Begin to connect; the socket is ready to be written to when that has ended.
// A host with several addresses is tried at the next one at each attempt.
//   kInvalidArgument: `name` is no "host:port".
absl::StatusOr<base::OwnedFd> ConnectTcp(const std::string& name, int attempt);
absl::StatusOr<base::OwnedFd> ConnectUnix(const std::string& name);

// Where `socket` is connected to: "127.0.0.1:40112", "pid 4711 on this host".
std::string PeerName(int socket);

}  // namespace troupe::comm

#endif  // COMM_CONNECT_SOCKETS_H_
