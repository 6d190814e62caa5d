// Frames through memory that two processes of a host share.
//
//   ShmLinkOptions options;
//   options.peer = 3;
//   options.side = 0;               // 1 at the other end
//   absl::StatusOr<std::unique_ptr<Link>> link =
//       MakeShmLink(segment, std::move(socket), options);
//
// A payload is copied once into the ring, where the sender is done with it; the
// sink is shown it there, or it is copied once more to where Place() said. The
// socket, a connected Unix stream between the two, carries no frames: a bell
// for a process that sleeps, descriptors, the reason of an end, and, by being
// closed, the news that the other process is dead. What it had published by
// then still comes.
//
// Memory that the processes lend to each other (Link::Lend) goes over the
// socket as a descriptor; the other end maps it.
//
// The other process is not trusted with our life: nonsense in the shared memory
// ends the link. It can change a payload while Take() looks at it.

#ifndef COMM_SHM_SHM_LINK_H_
#define COMM_SHM_SHM_LINK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/owned_fd.h"
#include "comm/link.h"
#include "comm/shm/shm_segment.h"

namespace troupe::comm {

struct ShmLinkOptions {
  int peer = 0;                       // the number of the other process
  std::string address = "this host";  // for errors
  int side = 0;                       // 0 at one end, 1 at the other
};

//   kResourceExhausted and others: what fcntl(2) says.
absl::StatusOr<std::unique_ptr<Link>> MakeShmLink(
    std::shared_ptr<ShmSegment> segment, base::OwnedFd socket,
    const ShmLinkOptions& options);

}  // namespace troupe::comm

#endif  // COMM_SHM_SHM_LINK_H_
