// The updates of a chunk's parameters: an optimizer for each arena, which
// updates bucket by bucket, row by row in a backward, or within a reduction
// (bucket_update.h); and which parameters a step leaves out.
//
//   BucketUpdates updates(options, arenas);
//   TROUPE_RETURN_IF_ERROR(updates.Attach(make_optimizer));
//   updates.BeginStep();
//   updates.LeaveOut(unused);
//   if (optimizer_needs_all_buckets) {
//     TROUPE_RETURN_IF_ERROR(updates.Inspect(scalars));
//     TROUPE_RETURN_IF_ERROR(updates.Conclude(scalars));
//   }
//   TROUPE_RETURN_IF_ERROR(updates.Update(k, scalars));
//   updates.CountLeftOut();
//
// A parameter is updated once in a step, by the first of these ways that comes
// to it, or is left out: value, states and age then stay as they are.
//
// Queues: Inspect(), Conclude(), SumParameters() and Update() enqueue in
// Options::queue.
// Errors: those of the optimizers. Threads: one at a time.

#ifndef ACTORS_CHUNKS_BUCKET_UPDATES_H_
#define ACTORS_CHUNKS_BUCKET_UPDATES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/chunks/bucket_arenas.h"
#include "actors/chunks/bucket_update.h"
#include "actors/chunks/update_counts.h"
#include "comm/communicator.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/optim/optimizer.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class BucketUpdates {
 public:
  // Makes an optimizer, one for each arena.
  using MakeOptimizerFn =
      std::function<absl::StatusOr<std::unique_ptr<nn::Optimizer>>()>;

  struct Options {
    std::shared_ptr<nn::Kernels> kernels;
    // Queue of updates on a device with queues.
    nn::Queue queue = nn::Queue::kCompute;
    nn::Tensor scalars;  // read by updates in a reduction
  };

  // `arenas` outlive it. They have their values.
  BucketUpdates(const Options& options, BucketArenas& arenas);

  // Makes the optimizers, whose states begin with the present values. Called
  // once.
  absl::Status Attach(const MakeOptimizerFn& make);
  // Returns the optimizer of an arena; null before Attach().
  nn::Optimizer* optimizer(int arena = 0) const {
    return parts_[arena].optimizer.get();
  }
  // Returns the age of the states of an arena's parameters.
  UpdateCounts& counts(int arena) { return parts_[arena].counts; }

  // Starts a step: no parameter is updated or left out.
  void BeginStep();

  // Lets the optimizers inspect all gradients (Optimizer::Inspect), which adds
  // the findings to `scalars`.
  absl::Status Inspect(const nn::Tensor& scalars);
  // Sets the scalars that follow from the findings of all stages
  // (Optimizer::Conclude). Call it for one chunk of a rank.
  absl::Status Conclude(nn::Tensor scalars);

  // Updates a parameter's rows [begin, begin + grads.dim(0)), with gradients
  // `grads`, which need not be the bucket's. The optimizer is elementwise.
  // Update() leaves the parameter out in this step, so all of its rows must be
  // updated before.
  absl::Status UpdateRows(const nn::Parameter& parameter, std::int64_t begin,
                          const nn::Tensor& grads, const nn::Tensor& scalars);
  // Returns whether UpdateRows() has updated all parameters of the bucket. Its
  // gradients are then not needed, and may have no memory.
  bool IsUpdated(int bucket) const;

  // Leaves these parameters out of the updates until the next call, or
  // BeginStep(). They must be trained, and all replicas must leave out the same
  // ones.
  void LeaveOut(absl::Span<nn::Parameter* const> parameters);
  // Returns whether LeaveOut() was given any.
  bool leaves_out() const;
  // Ends a step whose updates have left them out: their states are as old as
  // before (Optimizer::CountsUpdates). Not to be called for a skipped step.
  void CountLeftOut();

  // Computes this rank's part of the sums over the bucket's parameters that its
  // update needs (Optimizer::SumsParameters), with the scalars of the update.
  // Returns the collective that adds up those of all ranks, in place, before
  // Update(). Without `counts` this rank adds zeros: another one has the same
  // part.
  absl::StatusOr<comm::Collective> SumParameters(int bucket,
                                                 const nn::Tensor& scalars,
                                                 bool counts);
  // Updates the bucket with these scalars, and releases its gradients. If
  // owners share the states, only the owned slice.
  absl::Status Update(int bucket, const nn::Tensor& scalars);
  // Returns the collective that brings the slices of all owners together, after
  // Update().
  comm::Collective GatherValues(int bucket) const;
  // Returns the collective that reduces the bucket's gradients and updates its
  // parameters in one pass. Release the gradients once it has ended.
  comm::Collective ReduceUpdate(int bucket) const;

 private:
  // The updates of one arena.
  struct Part {
    std::shared_ptr<nn::Optimizer> optimizer;
    UpdateCounts counts;  // saved if Optimizer::CountsUpdates()
    std::vector<std::shared_ptr<BucketUpdate>> updates;  // one per bucket
    // Whether UpdateRows() was called in this step, by slot; empty if never.
    std::vector<bool> updated;
    // Whether updates leave a parameter out, by slot; empty: none.
    std::vector<bool> left_out;
  };

  // Returns the arena of a trained parameter.
  int PartOf(const nn::Parameter& parameter) const {
    return arenas_.PlaceOf(arenas_.BucketOf(parameter)).arena;
  }
  // Calls each(range) for the owned ranges of a bucket that UpdateRows() has
  // not updated and that are not left out.
  template <typename Each>
  absl::Status ForEachLeft(const BucketArenas::Place& place,
                           const Each& each) const;

  const Options options_;
  BucketArenas& arenas_;
  std::vector<Part> parts_;  // indexed by arena
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_BUCKET_UPDATES_H_
