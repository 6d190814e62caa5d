// Addresses of hosts: whether one is public, whether a process listens there,
// and which local address leads to it.
//
//   TROUPE_ASSIGN_OR_RETURN(bool open, IsPublicAddress("node7"));
//   TROUPE_ASSIGN_OR_RETURN(base::OwnedFd connection,
//                           OpenConnection("node7", 29400, timeout));
//   TROUPE_ASSIGN_OR_RETURN(std::string mine, LocalAddressTo("node7", 29400));

#ifndef ACTORS_CLUSTER_HOST_ADDRESS_H_
#define ACTORS_CLUSTER_HOST_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/owned_fd.h"

namespace troupe::actors {

// Whether `host` is, or resolves to, an address that is neither a loopback
// address nor in a private network (RFC 1918, 3927, 4193, 6598). 0.0.0.0 and ::
// count as public.
//   kNotFound: no such host.
absl::StatusOr<bool> IsPublicAddress(const std::string& host);

// Returns the numeric addresses of a name, without duplicates.
//   kNotFound: no such host.
absl::StatusOr<std::vector<std::string>> AddressesOf(const std::string& host);

// Connects to the port by TCP. Waits at most `timeout` for each of the host's
// addresses. The connection does not block.
//   kNotFound: no such host.
//   kUnavailable: no process listens there, or there is no route.
absl::StatusOr<base::OwnedFd> OpenConnection(const std::string& host, int port,
                                             absl::Duration timeout);

// Listens at the port of an address of this machine, and stops at once. For the
// reason why another part of the program could not.
//   kNotFound: no such host.
//   kAlreadyExists: another process has the port.
//   kUnavailable: the address is not this machine's, or may not be listened at.
absl::Status TryListening(const std::string& host, int port);

// Returns "host:port"; an IPv6 address stands in brackets.
std::string HostAndPort(const std::string& host, int port);

// Returns the address of this machine from which it reaches `host`. Sends
// nothing.
absl::StatusOr<std::string> LocalAddressTo(const std::string& host, int port);

// Returns this machine's name.
std::string HostName();

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_HOST_ADDRESS_H_
