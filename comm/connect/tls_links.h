// Makes TCP links with TLS from connections whose ends have authenticated each
// other.
//
//   TROUPE_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Link>> links,
//                           MakeTlsLinks(context, std::move(connections),
//                                        absl::Seconds(30)));
//
// All handshakes run at the same time, so that no process waits for its turn.

#ifndef COMM_CONNECT_TLS_LINKS_H_
#define COMM_CONNECT_TLS_LINKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/owned_fd.h"
#include "comm/link.h"
#include "comm/tcp/tls_stream.h"

namespace troupe::comm {

struct Connection {
  int peer = 0;
  std::string address;  // for errors
  base::OwnedFd socket;
  bool accepted = false;  // whether this end accepted; otherwise it connected
};

// Returns the links in the order of `connections`. Blocks for `timeout` at
// most.
//   kUnauthenticated: a certificate was not accepted, at this end.
//   kDeadlineExceeded: names the first process with an unfinished handshake.
absl::StatusOr<std::vector<std::unique_ptr<Link>>> MakeTlsLinks(
    const std::shared_ptr<TlsContext>& context,
    std::vector<Connection> connections, absl::Duration timeout);

}  // namespace troupe::comm

#endif  // COMM_CONNECT_TLS_LINKS_H_
