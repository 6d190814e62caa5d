// A version of libcaf_io's function that connects to a port, with a time-out
// and an error that says what failed. The linker prefers it to the library's
// own, for connections with and without TLS.
//
// The library's waits as long as the system does, minutes where packets are
// dropped, and the end of the program waits for it. Trying the port first by a
// connection of our own, which is closed at once, is no way out: CAF names a
// connection by its descriptor, and process 0 forgets one some time after it
// has closed it. The next connection may have received the same descriptor by
// then, and is forgotten instead: both its ends take the other process for
// lost.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/caf/status_error.h"
#include "actors/cluster/host_address.h"
#include "base/files/owned_fd.h"
#include "caf/io/network/default_multiplexer.hpp"

namespace caf::io::network {

expected<native_socket> new_tcp_connection(const std::string& host,
                                           std::uint16_t port,
                                           optional<protocol::network>) {
  absl::StatusOr<troupe::base::OwnedFd> connection =
      troupe::actors::OpenConnection(host, port, absl::Seconds(1));
  if (!connection.ok()) return troupe::actors::ToError(connection.status());
  return connection->release();
}

}  // namespace caf::io::network
