// Work on the chunks of a local group's collectives: reads the ranks' inputs,
// computes, and writes their ranges.
//
//   GroupWork work(&ring, /*chunk_bytes=*/32 << 10);
//   const Cut cut = work.CutOf(seq, share, signature);
//   TROUPE_RETURN_IF_ERROR(work.Compute(rank, seq, cut, share, chunk));
//
// Chunks run in any order, in any threads, concurrently. So none may write what
// another one reads. A chunk writes elements of `range`; a range that is no
// rank's input is safe. For collectives in place:
//
//     all_reduce, reduce   input and range are the same elements of the same
//                          tree. Only their own chunk reads them, before it
//                          writes them (ReduceTree).
//     reduce_scatter       rank r's range is block r of its input. Only the
//                          chunks of block r read it, and each element only the
//                          chunk that writes it.
//     broadcast, gather,   the rank's own block, from itself to itself. No
//     all_gather, scatter  other chunk writes there, and that copy is left out.
//     all_to_all           there is no form in place.
//
// Threads: those that have entered the group (group_state.h), one per rank.

#ifndef COMM_LOCAL_GROUP_WORK_H_
#define COMM_LOCAL_GROUP_WORK_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "comm/flow.h"
#include "comm/local/cut.h"
#include "comm/local/operation_ring.h"
#include "comm/reduction/reduction_tree.h"
#include "nn/tensor/caching_allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::internal {

class GroupWork {
 public:
  // `ring` outlives this.
  GroupWork(const OperationRing* ring, std::size_t chunk_bytes);

  // Returns how the share of `rank`, which has filled its slot, is cut into
  // chunks.
  Cut CutOf(std::uint64_t seq, int rank, std::uint64_t signature) const;
  // Processes a chunk of a share, which a thread of `rank` has claimed.
  absl::Status Compute(int rank, std::uint64_t seq, const Cut& cut, int share,
                       std::uint64_t chunk);

 private:
  // Part of a chunk that lies in one block of the flow.
  struct Piece {
    Reduction reduction;
    Block block;
  };
  // Memory for a chunk's sum, for an update.
  struct alignas(64) Scratch {
    nn::Tensor sum;
  };

  // Sets the sources of a reduction, `offset` bytes into each rank's input.
  void Gather(std::uint64_t seq, std::size_t offset, bool update,
              const void** sources) const;
  void Reduce(std::uint64_t seq, const Piece& piece) const;
  void Copy(std::uint64_t seq, const Piece& piece) const;
  absl::Status CopyByCounts(std::uint64_t seq, int from, std::int64_t begin,
                            std::int64_t end) const;
  absl::Status UpdateReplicas(int rank, std::uint64_t seq, const Piece& piece);
  absl::Status CompareReplicas(int rank, std::uint64_t seq) const;

  const OperationRing& ring_;
  const int size_;
  const std::size_t chunk_bytes_;
  nn::CachingAllocator allocator_;
  const std::unique_ptr<Scratch[]> scratch_;  // index: rank
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_GROUP_WORK_H_
