// The device memory that a rank of an NCCL group needs for itself: words of all
// ranks about what they start (start_words.h), and an int for barriers.
//
//   NcclScratch scratch(rank, size);
//   ncclResult_t result = scratch.Allocate(stream);
//
//   TROUPE_ASSIGN_OR_RETURN(
//       const std::shared_ptr<GatheredWords> words,
//       GatheredWords::Of(collectives, size, *work.host_allocator()));
//   result = scratch.Gather(*words, comm, stream);
//   result = scratch.CopyBack(*words, stream);  // once Gather() is complete
//   // Once the stream has run both: words->all
//
// Threads: one at a time. The destructor frees the memory, which no work of a
// stream may use any more.

#ifndef COMM_NCCL_NCCL_SCRATCH_H_
#define COMM_NCCL_NCCL_SCRATCH_H_

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "comm/nccl/start_words.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::internal {

// Words that the ranks exchange before they start collectives, in host memory.
struct GatheredWords {
  // Allocates both tensors, and fills `mine`.
  static absl::StatusOr<std::shared_ptr<GatheredWords>> Of(
      absl::Span<const Collective> collectives, int size,
      nn::Allocator& host_memory);

  nn::Tensor mine;      // [kStartWords], i64
  nn::Tensor all;       // [size, kStartWords], i64
  bool copied = false;  // whether work that fills `all` was enqueued
};

class NcclScratch {
 public:
  NcclScratch(int rank, int size) : rank_(rank), size_(size) {}
  ~NcclScratch();
  NcclScratch(const NcclScratch&) = delete;
  NcclScratch& operator=(const NcclScratch&) = delete;

  // Allocates the memory and sets it to zero. The other functions come after.
  ncclResult_t Allocate(void* stream);

  // Enqueue the two steps of an exchange: the words of all ranks are gathered
  // in the scratch memory, and then copied to the host.
  ncclResult_t Gather(const GatheredWords& words, ncclComm_t comm,
                      void* stream);
  ncclResult_t CopyBack(GatheredWords& words, void* stream);

  // Returns the int for barriers.
  void* barrier() const { return bytes_ + bytes_of_words(); }

 private:
  static constexpr std::size_t kBytesOfRank =
      kStartWords * sizeof(std::int64_t);

  std::size_t bytes_of_words() const { return size_ * kBytesOfRank; }

  const int rank_;
  const int size_;
  char* bytes_ = nullptr;
};

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_NCCL_SCRATCH_H_
