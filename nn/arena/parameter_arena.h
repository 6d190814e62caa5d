// Flat memory for a rank's parameters, gradients and optimizer states: parallel
// arenas in bucket order, so that all-reduce, optimizer and checkpoints work on
// contiguous ranges without copies.
//
//   // One vector per bucket; bucket 0 is complete first in backward.
//   auto arena = ParameterArena::Create(buckets, /*options=*/{}, allocator);
//   (*arena)->Initialize(seed);
//   Tensor g = (*arena)->BucketGrads(0);          // [elements of bucket 0]
//   (*arena)->AddState("momentum_buffer");        // zeros, parallel
//
// Every parameter begins on a 64-byte boundary and every bucket's length is a
// multiple of `pad_elems`; the padding is zero and stays zero under every
// optimizer that maps (0, 0) to 0. A Parameter's value and grad become views;
// its value is unspecified until Initialize() or another write.
//
// With keep_grads=false gradients are not parallel to the values: a bucket has
// memory for them only from HoldGrads() to ReleaseGrads(), and the next bucket
// reuses it. If each bucket is updated as soon as it is complete, a large model
// needs room for the gradients of one bucket, not of all.
//
// A parameter that is frozen when the arena is made (requires_grad false) lies
// behind the last bucket and is in none: nothing that works on buckets (weight
// decay, momentum) changes it, and its grad is undefined. It has a slot, by
// which checkpoints save and restore it like the others.
//
// Owners share the states of an arena (ZeRO, Rajbhandari et al. 2020,
// arXiv:1910.02054): owner i of n has states for slice i of n equal slices of
// each bucket, whole parameters or not, and updates that slice. Values and
// gradients are whole. States of frozen parameters are whole, too.
//
//   options.owner = 1, options.owners = 4;
//   arena->Owned(0);                     // the second quarter of bucket 0
//   arena->ViewState(momentum, arena->Owned(0));
//
// Option slice_grads (ZeRO stage 2) keeps gradients whole only until they are
// reduced, and then as slices (nn/arena/bucket_gradients.h):
//
//   arena->DetachGrads(0);                  // they are complete; the next
//                                           // backward writes others
//   arena->DetachedGrads(0);                // what is reduced
//   arena->KeepSlice(0, /*adds=*/false, queue);
//   arena->OwnedGrads(0);
//
// Errors: functions that allocate fail with kResourceExhausted if no memory is
// left; the message says for what. Create() fails with kInvalidArgument if
// dtypes are mixed (a rank has an arena per dtype), pad_elems is below 1 or
// does not divide into slices for all owners, or a parameter that is trained is
// in no bucket.

#ifndef NN_ARENA_PARAMETER_ARENA_H_
#define NN_ARENA_PARAMETER_ARENA_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/arena/bucket_gradients.h"
#include "nn/arena/owned_slices.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

inline constexpr int kNoBucket = -1;

// Place of a parameter: elements [begin, begin + shape.numel()).
struct ArenaSlot {
  Parameter* parameter = nullptr;
  int bucket = 0;  // kNoBucket if it is frozen
  std::int64_t begin = 0;
};

class ParameterArena {
 public:
  struct Options {
    // Bucket lengths are multiples of this many elements: the width of data
    // parallelism times a cache line, so that every shard is aligned.
    std::int64_t pad_elems = 16;
    // Further parameters, in no bucket, each of them frozen.
    std::vector<Parameter*> frozen = {};
    // Number of threads that fill the memory for the first time (first_fill.h).
    int threads = 1;
    // Whether all gradients have memory of their own all the time.
    bool keep_grads = true;
    // Without keep_grads: whether Create() allocates memory for the largest
    // bucket's gradients, rather than the first bucket that needs it.
    bool grads_ahead = true;
    // Parameter::index of the first slot, if a rank has several arenas.
    int first_index = 0;
    // Kernels that write memory which the host may not access. Outlives the
    // arena.
    Kernels* kernels = nullptr;
    // Dtype of the gradients; unset: that of the parameters. f32 gradients of
    // 16-bit parameters lose nothing over micro-batches and ranks.
    std::optional<DType> grad_dtype = std::nullopt;
    // Allocators of the gradients and of the values; null: that of the arena.
    // They outlive the arena.
    Allocator* grad_allocator = nullptr;
    Allocator* value_allocator = nullptr;
    // Whether reduced gradients are kept as the owned slices alone. Needs
    // kernels; keep_grads is then ignored.
    bool slice_grads = false;
    // Buckets that another rank holds too: that rank counts them in norms.
    std::vector<int> copied_buckets = {};
    // Number of the equal slice of each bucket that has states here, and
    // number of all slices, which divides pad_elems.
    int owner = 0, owners = 1;
  };

  static absl::StatusOr<std::unique_ptr<ParameterArena>> Create(
      const std::vector<std::vector<Parameter*>>& buckets,
      const Options& options, Allocator& allocator);

  // Fills values by each parameter's initialiser, keyed by (seed, name);
  // the same with any number of threads.
  //   kResourceExhausted: if the host may not access the arena's memory, the
  //     values are drawn in host memory of the same size, and there is not
  //     enough.
  absl::Status Initialize(std::uint64_t seed);
  // Does the same for the parameters of one bucket, or the frozen ones
  // (kNoBucket), of an arena that the host may access.
  void InitializeBucket(std::uint64_t seed, int bucket);
  // Starts a step: gradients count as unwritten. Touches no memory.
  void BeginStep();
  // Zeroes the gradients that nothing has written in this step (parameters that
  // the model did not use), so that no reduction sees stale gradients. Calls
  // HoldGrads(bucket) if there are unwritten gradients.
  absl::Status ZeroUnwritten(int bucket);

  // Gives the gradients of `bucket` memory, with zeros between the parameters,
  // and defines each Parameter's grad. No effect if they have memory.
  absl::Status HoldGrads(int bucket);
  // Releases the memory of the bucket's gradients, which nothing may use any
  // more: another bucket may get it, and each Parameter's grad becomes
  // undefined. No effect if they have no memory, and with keep_grads.
  void ReleaseGrads(int bucket);

  const Tensor& values() const { return values_; }
  // Gradients of all buckets; undefined without keep_grads.
  const Tensor& grads() const { return gradients_.all(); }
  int num_buckets() const { return static_cast<int>(ranges_.size()); }
  const ArenaRange& range(int bucket) const { return ranges_[bucket]; }
  // Whether another rank holds the same bucket, so that norms over all
  // gradients of a model leave it out here: Optimizer::Inspect().
  bool IsCopied(int bucket) const {
    return std::count(options_.copied_buckets.begin(),
                      options_.copied_buckets.end(), bucket) > 0;
  }
  Tensor BucketValues(int bucket) const { return View(values_, bucket); }
  // Requires that the bucket's gradients have memory: HoldGrads().
  Tensor BucketGrads(int bucket) const { return gradients_.Of(bucket); }
  // Returns the gradients of the slice that has states here.
  Tensor OwnedGrads(int bucket) const { return gradients_.Owned(bucket); }

  // These need slice_grads. DetachGrads() ends a micro-batch of the bucket: its
  // gradients count as unwritten, and need memory anew.
  bool slices_grads() const { return gradients_.slices(); }
  void DetachGrads(int bucket);
  // Returns the gradients that were detached first; undefined: there are none.
  Tensor DetachedGrads(int bucket) const { return gradients_.Detached(bucket); }
  // Copies their owned slice to OwnedGrads(), or adds it, in `queue`, and frees
  // the rest.
  absl::Status KeepSlice(int bucket, bool adds, Queue queue) {
    return gradients_.KeepSlice(bucket, adds, queue);
  }
  // Returns the bytes of gradients that last from step to step.
  std::size_t lasting_grad_bytes() const { return gradients_.lasting_bytes(); }
  const std::vector<ArenaSlot>& slots() const { return slots_; }
  // Parameter::index of the first slot.
  int first_index() const { return options_.first_index; }

  // The elements that have states here.
  const OwnedSlices& owned() const { return owned_; }
  int owners() const { return owned_.owners(); }
  // Returns the slice of a bucket that has states here.
  ArenaRange Owned(int bucket) const { return owned_.Of(bucket); }

  // Adds an arena of zeros, kept under `name` for checkpoints, for all elements
  // that have states here: parallel to the values, if there is one owner. It
  // has the parameters' dtype unless another is given.
  absl::StatusOr<Tensor> AddState(absl::string_view name,
                                  std::optional<DType> dtype = std::nullopt);
  const std::vector<std::pair<std::string, Tensor>>& states() const {
    return states_;
  }
  // Returns elements [range.begin, range.end) of a parallel arena.
  Tensor View(const Tensor& arena, const ArenaRange& range) const;
  Tensor View(const Tensor& arena, int bucket) const {
    return View(arena, ranges_[bucket]);
  }
  // Returns elements [range.begin, range.end) of a state; they must lie in one
  // of owned().All().
  Tensor ViewState(const Tensor& state, const ArenaRange& range) const {
    return state.FlatView(owned_.PlaceOf(range.begin), {range.size()});
  }
  // Returns the part of a parallel arena that belongs to `slot`, in its shape.
  Tensor View(const Tensor& arena, const ArenaSlot& slot) const;

 private:
  struct Layout;

  ParameterArena(Layout layout, const Options& options, Allocator& allocator);

  absl::Status Init(std::int64_t elems);
  // Zeroes the padding between `slots` in `elems`, the elements of `range`.
  absl::Status ZeroPadding(absl::Span<const ArenaSlot> slots,
                           const ArenaRange& range, const Tensor& elems) const;
  absl::Status FillWithZeros(Tensor elems) const;
  absl::Span<const ArenaSlot> SlotsOf(int bucket) const;
  // Returns how memory of a dtype is made, for BucketGradients::Zeros().
  BucketGradients::Options MemoryOf(DType dtype, Allocator& allocator) const;
  void BindGrads(int bucket);
  // Marks the gradient of a parameter as unwritten.
  static void Forget(Parameter& parameter);

  Allocator& allocator_;
  const Options options_;
  const DType dtype_;
  std::vector<ArenaSlot> slots_;  // frozen parameters last
  // Index in slots_ of each bucket's first slot; the last one is that of the
  // frozen parameters.
  std::vector<int> first_slot_;
  std::vector<ArenaRange> ranges_;
  OwnedSlices owned_;
  BucketGradients gradients_;
  Tensor values_;
  std::vector<std::pair<std::string, Tensor>> states_;
};

}  // namespace troupe::nn

#endif  // NN_ARENA_PARAMETER_ARENA_H_
