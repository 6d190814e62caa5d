// Connects the processes of a job, each with each.
//
//   ConnectOptions options;
//   options.process = 1;
//   options.processes = 4;
//   options.token = token;  // of the job, the same 32 secret bytes for all
//   absl::StatusOr<std::vector<std::unique_ptr<Link>>> links =
//       ConnectLinks(options, store);
//   (*links)[0]->Send(frame, payload, /*done=*/nullptr, /*copy=*/true);
//
// Every process listens, leaves its address in the store, connects to those
// with lower numbers, and is connected to by the others. Processes with the
// same host key get a link through shared memory, others one by TCP.
//
// A listener serves many strangers at once. Whoever has not proved himself
// (handshake.h) within `stranger_timeout` is dropped, and the oldest one where
// too many come. It is closed when this returns.
//
// Threads: blocks the calling one, until `timeout` at most (and the resolver,
// where a host is advertised by name).

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

// Strangers that are listened to at a time.
inline constexpr std::size_t kStrangersMax = 64;

// The links by the number of the other process; null for this one.
//   kInvalidArgument: options that cannot be, named.
//   kFailedPrecondition: the transport is shared memory, and a process is on
//     another host.
//   kUnauthenticated: a certificate is not accepted.
//   kDeadlineExceeded: names every process without a link, and why.
//   Others: what the store or the system says.
absl::StatusOr<std::vector<std::unique_ptr<Link>>> ConnectLinks(
    const ConnectOptions& options, Store& store);

}  // namespace troupe::comm

#endif  // COMM_CONNECT_CONNECT_LINKS_H_
