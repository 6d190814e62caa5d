// Connects each process of a job with each other one.
//
//   ConnectOptions options;
//   options.process = 1;
//   options.processes = 4;
//   options.token = token;  // of the job, the same 32 secret bytes for all
//   absl::StatusOr<std::vector<std::unique_ptr<Link>>> links =
//       ConnectLinks(options, store);
//   (*links)[0]->Send(frame, payload, /*done=*/nullptr, /*copy=*/true);
//
// Every process listens, publishes its address in the store, connects to the
// processes with lower numbers, and accepts connections from the others.
// Processes with the same host key get a link through shared memory, others one
// over TCP.
//
// A listener serves many connections at once. One that has not proved its
// identity (handshake.h) within `stranger_timeout` is dropped, and so is the
// oldest if there are too many. The listener is closed when this returns.
//
// Threads: blocks the caller, for `timeout` at most (and for the resolver, if a
// host is advertised by name).

#ifndef COMM_CONNECT_CONNECT_LINKS_H_
#define COMM_CONNECT_CONNECT_LINKS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/connect/connect_options.h"
#include "comm/link.h"
#include "comm/store.h"

namespace troupe::comm {

// Limit on the connections in a handshake at a time.
inline constexpr std::size_t kStrangersMax = 64;

// Returns the links, indexed by the other process; null for this one.
//   kInvalidArgument: names the option that is invalid.
//   kFailedPrecondition: the transport is shared memory, and a process is on
//     another host.
//   kUnauthenticated: a certificate is not accepted.
//   kDeadlineExceeded: names every process without a link, and why.
//   Other codes: errors of the store or the system.
absl::StatusOr<std::vector<std::unique_ptr<Link>>> ConnectLinks(
    const ConnectOptions& options, Store& store);

}  // namespace troupe::comm

#endif  // COMM_CONNECT_CONNECT_LINKS_H_
