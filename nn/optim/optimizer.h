// An optimizer updates ranges of a rank's arena, bucket by bucket, as soon as
// each is reduced.
//
//   Sgd sgd({/*lr=*/0.1, /*momentum=*/0.9});
//   sgd.Attach(arena);
//   StepScalars values;                        // nn/kernels/step_scalars.h
//   sgd.FillScalars(/*step=*/0, values);
//   values.loss_count = 64;
//   kernels.SetStepScalars(values, scalars);
//   for (int k = 0; k < arena.num_buckets(); ++k) {
//     sgd.Update(kernels, scalars, arena, k);
//   }

#ifndef NN_OPTIM_OPTIMIZER_H_
#define NN_OPTIM_OPTIMIZER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Adds the state arenas that the optimizer needs.
  //   kResourceExhausted: no memory is left; the message names the state.
  virtual absl::Status Attach(ParameterArena& arena) = 0;
  // Called when the parameters have their first values, and again when they
  // have those of a checkpoint: fills states that do not begin as zeros. A
  // checkpoint overwrites the states that it contains.
  virtual absl::Status Begin(Kernels&, ParameterArena&) {
    return absl::OkStatus();
  }

  // Whether an update depends on the number of updates before it: the age of a
  // parameter's states (PyTorch's state["step"]), as in Adam's bias
  // corrections. The age belongs to each parameter, because parameters may
  // begin later than the run: added ones, and those that were frozen.
  virtual bool CountsUpdates() const { return false; }
  // Sets the run's update, counted from 0, that is the first one of each slot
  // of the arena; before this call, all begin with update 0. For an optimizer
  // that CountsUpdates(), after Attach(), between steps.
  virtual void SetFirstUpdates(const ParameterArena&,
                               absl::Span<const double> /*first*/) {}

  // Returns StepScalars::lr of the step after `step` committed ones.
  virtual double LearningRate(std::int64_t step) const = 0;
  // Sets the scalars that depend on the number of the step: lr, step, and the
  // optimizer's own.
  virtual void FillScalars(std::int64_t step, StepScalars& values) const {
    values.lr = LearningRate(step);
    values.step = static_cast<double>(step);
  }

  // Computes sums over the gradients of the owned slices
  // (ParameterArena::Owned), except those of copied buckets (IsCopied). Called
  // if NeedsAllBuckets(), when all buckets are reduced, before the first of
  // them is updated. Adds its results to StepScalars::non_finite and
  // square_sum, on the device, which are then summed over the stages and the
  // owners. A step with non_finite updates nothing, and is reported as skipped.
  virtual absl::Status Inspect(Kernels&, const Tensor& /*scalars*/,
                               const ParameterArena&) {
    return absl::OkStatus();
  }
  // Sets the scalars that follow from these sums, once for all arenas of a
  // rank. All ranks have the same sums and so the same result.
  virtual absl::Status Conclude(Kernels&, Tensor& /*scalars*/) {
    return absl::OkStatus();
  }
  // Whether Inspect() may find that a step must be skipped.
  virtual bool MaySkipSteps() const { return false; }

  // Updates the owned slice of a bucket from its reduced gradients. `scalars`
  // is a tensor of StepScalars on the arena's device.
  absl::Status Update(Kernels& kernels, const Tensor& scalars,
                      ParameterArena& arena, int bucket) {
    return UpdateRange(kernels, scalars, arena, arena.Owned(bucket),
                       arena.OwnedGrads(bucket));
  }

  // Updates the arena's elements of `range`, whole parameters of a bucket, from
  // their reduced gradients `grads`, which may be outside the arena. If
  // IsElementwise(), or after SumRange(), `range` may be any part of a bucket's
  // owned slice.
  virtual absl::Status UpdateRange(Kernels& kernels, const Tensor& scalars,
                                   ParameterArena& arena,
                                   const ArenaRange& range,
                                   const Tensor& grads) = 0;

  // Whether an update needs sums over each whole parameter, such as its norm.
  // Where ranks have parts of parameters (slices of owners, pieces along tp),
  // each computes its part of the sums, with the scalars and gradients of the
  // update:
  //
  //   Tensor sums = *optimizer.BeginSums(kernels, arena, bucket);
  //   optimizer.SumRange(kernels, scalars, arena, range, grads);
  //   // ... the sums of all ranks are added up, in place ...
  //   optimizer.UpdateRange(kernels, scalars, arena, range, grads);
  virtual bool SumsParameters() const { return false; }
  // Sets the sums of a bucket's parameters to 0 and returns them, f64. Each
  // bucket has the same ones in every step.
  virtual absl::StatusOr<Tensor> BeginSums(Kernels&, const ParameterArena&,
                                           int /*bucket*/) {
    return absl::UnimplementedError(
        "Optimizer: BeginSums() of one that SumsParameters() is missing; "
        "declare one");
  }
  // Adds the part of `range`, a part of the bucket's owned slice. May change
  // states; UpdateRange() of the same ranges follows.
  virtual absl::Status SumRange(Kernels&, const Tensor& /*scalars*/,
                                ParameterArena&, const ArenaRange& /*range*/,
                                const Tensor& /*grads*/) {
    return absl::OkStatus();
  }

  // Whether an update must wait until all buckets are reduced (for a global
  // norm or a finite check).
  virtual bool NeedsAllBuckets() const { return false; }

  // Whether the update of an element depends on that element alone, so that a
  // bucket may be updated in parts, with the same bits. Then all state of an
  // element is in states of the arena, and UpdateRange() may be called any
  // number of times in a step: in a group that reduces and updates in one pass,
  // a rank updates some parts and gets the values and states of the others from
  // its peers.
  virtual bool IsElementwise() const { return false; }
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_OPTIMIZER_H_
