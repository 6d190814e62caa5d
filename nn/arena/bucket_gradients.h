// Memory of the gradients of an arena's buckets, in one of three ways:
//
//     kAll      all buckets have memory all the time, one tensor
//     kShared   a bucket has memory from Hold() to Release(), and the next one
//               reuses it
//     kSlices   as kShared, but a bucket is released to its reduction, after
//               which the owned slice alone is kept (ZeRO stage 2; Rajbhandari
//               et al. 2020, arXiv:1910.02054, sec. 5.2), in memory for all
//               slices
//
// The last one in use:
//
//   BucketGradients gradients;
//   TROUPE_RETURN_IF_ERROR(gradients.Init(options, ranges, owned));
//   TROUPE_RETURN_IF_ERROR(gradients.Hold(0).status());
//   Fill(gradients.Of(0));                    // the backward
//   gradients.Detach(0);                      // the next one may begin
//   ReduceScatter(gradients.Detached(0));
//   TROUPE_RETURN_IF_ERROR(gradients.KeepSlice(0, /*adds=*/false, queue));
//   Update(gradients.Owned(0));
//
// A bucket may be detached several times, once for each micro-batch; slices are
// kept in the same order. Blocks of kSlices all have the length of the largest
// bucket. On a device with queues two of them alternate, so that the backward
// of one bucket runs beside the reduction of the one before: Hold() lets the
// compute queue wait until the slice that was in the block is kept.
//
// Errors: kResourceExhausted if no memory is left; says for what.
// Threads: one at a time.

#ifndef NN_ARENA_BUCKET_GRADIENTS_H_
#define NN_ARENA_BUCKET_GRADIENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/event.h"
#include "nn/arena/owned_slices.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

enum class Queue;  // nn/kernels/device_queues.h

class BucketGradients {
 public:
  enum class Way { kAll, kShared, kSlices };

  struct Options {
    Way way = Way::kAll;
    // Whether Init() allocates memory for the largest bucket, if buckets share
    // memory.
    bool ahead = true;
    DType dtype = DType::kF32;
    int threads = 1;
    Allocator* allocator = nullptr;  // outlives it
    // Outlives it. Null: the host may access the memory; not with kSlices.
    Kernels* kernels = nullptr;
  };

  absl::Status Init(const Options& options, std::vector<ArenaRange> buckets,
                    const OwnedSlices& owned);
  // Starts a step: what an aborted one has detached is free.
  void BeginStep();

  // Gradients of all buckets; undefined unless kAll.
  const Tensor& all() const { return all_; }
  bool slices() const { return options_.way == Way::kSlices; }

  // Gives the bucket memory, of any content. Returns false if it has some.
  absl::StatusOr<bool> Hold(int bucket);
  bool IsHeld(int bucket) const { return buckets_[bucket].held.defined(); }
  // Releases the bucket's memory. Not with kAll.
  void Release(int bucket);
  // Returns the bucket's gradients, flat. They need memory.
  Tensor Of(int bucket) const;

  // These need kSlices.
  void Detach(int bucket);
  // Returns the gradients that were detached first, or undefined.
  Tensor Detached(int bucket) const;
  // Copies the owned slice of these to those that are kept, or adds it, in
  // `queue`, and frees the rest.
  absl::Status KeepSlice(int bucket, bool adds, Queue queue);

  // Returns the gradients of the owned slice: with kSlices the kept ones.
  Tensor Owned(int bucket) const;
  // Returns the bytes that last from step to step.
  std::size_t lasting_bytes() const;

  // Returns memory for `elems` elements, of zeros. `what` says in an error what
  // they are for.
  static absl::StatusOr<Tensor> Zeros(std::int64_t elems,
                                      absl::string_view what,
                                      const Options& options);

 private:
  // A block that no bucket holds; it may be written after `free`.
  struct Block {
    Tensor memory;
    base::Event free;
  };
  struct Bucket {
    ArenaRange range;
    Tensor held;  // or more; undefined while the bucket holds none
    std::vector<Tensor> detached;
  };

  absl::StatusOr<Tensor> Take(int bucket);
  absl::StatusOr<Tensor> TakeOfLargest();
  Tensor SliceOf(int bucket, const Tensor& block) const;

  Options options_;
  std::vector<Bucket> buckets_;
  OwnedSlices owned_;
  std::int64_t largest_ = 0;  // elements of the largest bucket
  int blocks_ = 0;            // number of all blocks of kSlices
  Tensor all_, kept_;
  std::vector<Block> free_;
};

}  // namespace troupe::nn

#endif  // NN_ARENA_BUCKET_GRADIENTS_H_
