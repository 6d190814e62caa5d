// Memory of a chunk's parameters and gradients: an arena for each dtype
// (nn/arena/parameter_arena.h), with the buckets of the plan by their numbers
// there. Optimizers add their states to the arenas.
//
//   TROUPE_ASSIGN_OR_RETURN(auto arenas,
//                           BucketArenas::Create(layout, options));
//   arenas->BeginStep();
//   TROUPE_RETURN_IF_ERROR(arenas->HoldGrads(k));    // before their backward
//   comm->RunInline(comm::AllReduce(op, arenas->Grads(k)), timeout);
//   arenas->ReleaseGrads(k);
//
// Every trained parameter is in one bucket, and every bucket in one arena. The
// padding between parameters is zero.
//
// Errors: those of nn::ParameterArena. Threads: one at a time.

#ifndef ACTORS_CHUNKS_BUCKET_ARENAS_H_
#define ACTORS_CHUNKS_BUCKET_ARENAS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/arena_layout.h"
#include "nn/arena/parameter_arena.h"
#include "nn/arena/released_values.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class BucketArenas {
 public:
  using Place = ArenaLayout::Place;

  struct Options {
    nn::Kernels* kernels = nullptr;  // outlives the arenas
    std::uint64_t seed = 0;          // seed of initial values
    int replicas = 1;                // a bucket has a part for each, padded
    // Number of the slice of each bucket that has states here, and of all of
    // them (nn::ParameterArena::Options).
    int owner = 0;
    int owners = 1;
    // Whether values outside of the slice of this owner have memory only from
    // HoldValues() to ReleaseValues().
    bool release_values = false;
    // Lets other processes of the host read the slices of this owner then; null
    // if there are none (nn::ReleasedValues).
    nn::SharePages share_pages;
    int threads = 1;  // number of those that fill parameters
    std::optional<nn::DType> grad_dtype;  // unset: that of the parameters
    // Allocators of gradients and of values, which outlive the arenas; null:
    // that of the kernels.
    nn::Allocator* grad_allocator = nullptr;
    nn::Allocator* value_allocator = nullptr;
    // Whether all gradients of an arena with several buckets have memory all
    // the time (nn::ParameterArena::Options).
    bool keep_grads = true;
    bool grads_ahead = true;
    // Whether reduced gradients are kept as the owner's slices alone.
    bool slice_grads = false;
  };

  // Gives the parameters of the layout memory, and initial values. A frozen one
  // no longer requires a gradient.
  static absl::StatusOr<std::unique_ptr<BucketArenas>> Create(
      const ArenaLayout& layout, const Options& options);

  int num_buckets() const { return static_cast<int>(places_.size()); }
  // Returns the bucket of a parameter; nn::kNoBucket if it is frozen.
  int BucketOf(const nn::Parameter& parameter) const {
    return bucket_of_[parameter.index];
  }
  // Returns whether the parameter is one of these, and trained.
  bool Has(const nn::Parameter& parameter) const;

  // The arenas are in the order of the dtypes' first buckets. A model of one
  // dtype has one.
  int num_arenas() const { return static_cast<int>(arenas_.size()); }
  const nn::ParameterArena& arena(int i) const { return *arenas_[i]; }
  const std::shared_ptr<nn::ParameterArena>& handle(int i) const {
    return arenas_[i];
  }
  // Returns the arena of a bucket, and the bucket's number in it.
  const Place& PlaceOf(int bucket) const { return places_[bucket]; }
  nn::ParameterArena& ArenaOf(int bucket) const {
    return *arenas_[places_[bucket].arena];
  }

  // These do the same as the nn::ParameterArena methods of their names.
  void BeginStep();
  absl::Status HoldGrads(int bucket) {
    return ArenaOf(bucket).HoldGrads(places_[bucket].k);
  }
  void ReleaseGrads(int bucket) {
    ArenaOf(bucket).ReleaseGrads(places_[bucket].k);
  }
  absl::Status ZeroUnwritten(int bucket) {
    return ArenaOf(bucket).ZeroUnwritten(places_[bucket].k);
  }
  // Do the same as the methods of nn::ReleasedValues; without
  // Options::release_values, nothing.
  void HoldValues(int bucket) {
    if (!released_.empty()) ReleasedOf(bucket).Hold(places_[bucket].k);
  }
  void ReleaseValues(int bucket) {
    if (!released_.empty()) ReleasedOf(bucket).Release(places_[bucket].k);
  }
  void FreeReused() {
    for (nn::ReleasedValues& released : released_) released.FreeReused();
  }
  // Returns the bytes of values that have had no memory so far.
  std::size_t never_held_bytes() const;

  bool slices_grads() const { return slices_grads_; }
  void DetachGrads(int bucket) {
    ArenaOf(bucket).DetachGrads(places_[bucket].k);
  }
  absl::Status KeepSlice(int bucket, bool adds, nn::Queue queue) const {
    return ArenaOf(bucket).KeepSlice(places_[bucket].k, adds, queue);
  }

  // Returns the gradients of a bucket, flat, with padding: those that were
  // detached first, if any. They need memory (HoldGrads()).
  nn::Tensor Grads(int bucket) const;
  // Returns the same without the padding at the bucket's end, which depends on
  // the stage.
  nn::Tensor UnpaddedGrads(int bucket) const;
  // Returns the slice of a bucket's gradients, of its values, that this owner
  // updates; all of it, if there is one owner.
  nn::Tensor OwnedGrads(int bucket) const {
    return ArenaOf(bucket).OwnedGrads(places_[bucket].k);
  }
  nn::Tensor OwnedValues(int bucket) const;
  // Returns what all replicas have of the bucket, flat: its parameters, unless
  // they are released between uses, and the optimizer states unless owners
  // share them.
  std::vector<nn::Tensor> StateOf(int bucket) const;

 private:
  BucketArenas() = default;
  nn::ReleasedValues& ReleasedOf(int bucket) {
    return released_[places_[bucket].arena];
  }
  // Adds the parameters of one dtype.
  absl::Status Add(const ArenaLayout::Arena& layout, const Options& options);

  std::vector<std::shared_ptr<nn::ParameterArena>> arenas_;
  // Indexed by arena; empty if values have memory all the time.
  std::vector<nn::ReleasedValues> released_;
  std::vector<Place> places_;  // indexed by bucket of the plan
  // Bucket of each parameter, indexed by Parameter::index; kNoBucket: frozen.
  std::vector<int> bucket_of_;
  bool slices_grads_ = false;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_BUCKET_ARENAS_H_
