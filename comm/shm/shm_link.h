// Frames through memory that two processes of a host share.
//
//   ShmLinkOptions options;
//   options.peer = 3;
//   options.side = 0;               // 1 at the other end
//   absl::StatusOr<std::unique_ptr<Link>> link =
//       MakeShmLink(segment, std::move(socket), options);
//
// A payload is copied into the ring, after which the sender no longer needs it;
// the sink reads it there, or it is copied once more to the memory from
// Place(). The socket, a connected Unix stream, carries no frames: it carries
// wake-ups for a sleeping process, descriptors, the reason of an end, and, by
// being closed, the information that the other process is dead. Frames that it
// had published before are still delivered.
//
// Memory that the processes lend to each other (Link::Lend) is sent over the
// socket as a descriptor; the other end maps it.
//
// The other process is not trusted: garbage in the shared memory ends the link.
// It can change a payload while Take() reads it.

#ifndef COMM_SHM_SHM_LINK_H_
#define COMM_SHM_SHM_LINK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/owned_fd.h"
#include "comm/link.h"
#include "comm/shm/shm_segment.h"

namespace troupe::comm {

struct ShmLinkOptions {
  int peer = 0;                       // number of the other process
  std::string address = "this host";  // for errors
  int side = 0;                       // 0 at one end, 1 at the other
};

// Makes one end of a link.
//   kResourceExhausted and others: errors of fcntl(2).
absl::StatusOr<std::unique_ptr<Link>> MakeShmLink(
    std::shared_ptr<ShmSegment> segment, base::OwnedFd socket,
    const ShmLinkOptions& options);

}  // namespace troupe::comm

#endif  // COMM_SHM_SHM_LINK_H_
