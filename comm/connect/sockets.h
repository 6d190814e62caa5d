// Functions to listen and to connect; the sockets never block.
//
//   TROUPE_ASSIGN_OR_RETURN(Listener listener, ListenTcp("127.0.0.1"));
//   TROUPE_ASSIGN_OR_RETURN(base::OwnedFd socket,
//                           ConnectTcp(listener.name, /*attempt=*/0));
//
// Threads: any. A host name is looked up by the system's resolver, which does
// block; a numeric address needs no resolver.

#ifndef COMM_CONNECT_SOCKETS_H_
#define COMM_CONNECT_SOCKETS_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/files/owned_fd.h"

namespace troupe::comm {

struct Listener {
  base::OwnedFd socket;
  // "127.0.0.1:40112", "[::1]:40112"; "00a1f" for a Unix socket.
  std::string name;
};

// Listens on a port that the system chooses. `address` is a numeric address of
// this host.
absl::StatusOr<Listener> ListenTcp(const std::string& address);
// Listens on an abstract Unix socket whose name the system chooses: it is in no
// file system, and disappears with its process.
absl::StatusOr<Listener> ListenUnix();

// Returns the next connection; without a descriptor if there is none.
base::OwnedFd Accept(const Listener& listener);

// Start to connect; the socket becomes writable when that has ended. For a host
// with several addresses, each attempt tries the next one.
//   kInvalidArgument: `name` is not "host:port".
absl::StatusOr<base::OwnedFd> ConnectTcp(const std::string& name, int attempt);
absl::StatusOr<base::OwnedFd> ConnectUnix(const std::string& name);

// Returns the peer of `socket`: "127.0.0.1:40112", "pid 4711 on this host".
std::string PeerName(int socket);

}  // namespace troupe::comm

#endif  // COMM_CONNECT_SOCKETS_H_
