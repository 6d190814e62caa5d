// Addresses of hosts: whether anybody can come by, and whether somebody listens
// there.
//
//   TROUPE_ASSIGN_OR_RETURN(bool open, IsPublicAddress("node7"));
//   absl::Status listens = ProbePort("node7", 29400, absl::Seconds(1));
//   TROUPE_ASSIGN_OR_RETURN(std::string mine, LocalAddressTo("node7", 29400));

#ifndef ACTORS_CLUSTER_HOST_ADDRESS_H_
#define ACTORS_CLUSTER_HOST_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace troupe::actors {

// Whether `host` is, or has, an address that is neither of this machine alone
// nor of a private network (RFC 1918, 3927, 4193, 6598); 0.0.0.0 and :: are.
//   kNotFound: no such host.
absl::StatusOr<bool> IsPublicAddress(const std::string& host);

// What a name stands for, as numbers, each once.
//   kNotFound: no such host.
absl::StatusOr<std::vector<std::string>> AddressesOf(const std::string& host);

// Connects, and closes the connection at once.
//   kNotFound: no such host. kUnavailable: nobody listens, or no way there.
absl::Status ProbePort(const std::string& host, int port,
                       absl::Duration timeout);

// The address of this machine by which it reaches `host`. Sends nothing.
absl::StatusOr<std::string> LocalAddressTo(const std::string& host, int port);

// This machine's name.
std::string HostName();

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_HOST_ADDRESS_H_
