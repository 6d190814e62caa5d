// How a rank gets memory that other processes of its host can access, so that
// collectives read each other's ranges without a copy.
//
//   PeerMemory memory;
//   memory.allocator = &shared->allocator();     // comm::SharedMemory
//   memory.share_pages = [shared](absl::Span<const absl::Span<char>> pages) {
//     return shared->Share(pages);
//   };
//   setup.peer_memory = memory;
//
// Both are null in a rank without such processes.

#ifndef ACTORS_CHUNKS_PEER_MEMORY_H_
#define ACTORS_CHUNKS_PEER_MEMORY_H_

#include "nn/arena/released_values.h"
#include "nn/tensor/allocator.h"

namespace troupe::actors {

struct PeerMemory {
  // Allocator of what ranks exchange, in host memory: gradients, and values of
  // which each owner updates a slice; null: that of all tensors.
  nn::Allocator* allocator = nullptr;
  // Shares the owned slices of values that are released between uses, in place;
  // null: they stay private.
  nn::SharePages share_pages = nullptr;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_PEER_MEMORY_H_
