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
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Adds the state arenas that the optimizer needs.
  //   kResourceExhausted: there is no memory for them; names the state.
  virtual absl::Status Attach(ParameterArena& arena) = 0;
  // Called when the parameters have their first values, initial ones or those
  // of a checkpoint (then both): fills states that begin with other than zeros.
  // A checkpoint overwrites those that it has.
  virtual absl::Status Begin(Kernels&, ParameterArena&) {
    return absl::OkStatus();
  }

  // What StepScalars::lr is in the step after `step` committed ones.
  virtual double LearningRate(std::int64_t step) const = 0;
  // Sets those scalars that follow from the number of the step: lr, step, and
  // the optimizer's own.
  virtual void FillScalars(std::int64_t step, StepScalars& values) const {
    values.lr = LearningRate(step);
    values.step = static_cast<double>(step);
  }

  // Looks at the gradients as a whole, but for copied buckets
  // (ParameterArena::IsCopied); called where NeedsAllBuckets(), when all
  // buckets are reduced, before the first of them is updated. What it finds is
  // added to StepScalars::non_finite and square_sum, on the device, which are
  // then summed over the stages. A step with non_finite updates nothing, and is
  // reported as skipped.
  virtual absl::Status Inspect(Kernels&, const Tensor& /*scalars*/,
                               const ParameterArena&) {
    return absl::OkStatus();
  }
  // What follows from these sums; once for all arenas of a rank. All ranks have
  // the same scalars and so the same answer.
  virtual absl::Status Conclude(Kernels&, Tensor& /*scalars*/) {
    return absl::OkStatus();
  }
  // True where Inspect() may find that a step is to be skipped.
  virtual bool MaySkipSteps() const { return false; }

  // Updates bucket `bucket` from its reduced gradients. `scalars`: a tensor of
  // StepScalars on the arena's device.
  absl::Status Update(Kernels& kernels, const Tensor& scalars,
                      ParameterArena& arena, int bucket) {
    return UpdateRange(kernels, scalars, arena, arena.range(bucket),
                       arena.BucketGrads(bucket));
  }

  // Updates the arena's elements of `range`, a bucket, from their reduced
  // gradients `grads`, which may lie elsewhere than in the arena. Where
  // IsElementwise(), `range` may be any part of a bucket.
  virtual absl::Status UpdateRange(Kernels& kernels, const Tensor& scalars,
                                   ParameterArena& arena,
                                   const ArenaRange& range,
                                   const Tensor& grads) = 0;

  // True where an update must wait until all buckets are reduced (a global
  // norm, a finite check).
  virtual bool NeedsAllBuckets() const { return false; }

  // True where what becomes of an element depends on that element alone, so
  // that a bucket may be updated in parts, with the same bits. Then all that
  // the optimizer keeps for an element lies in states of the arena, and it may
  // be called any number of times in a step: in a group that reduces and
  // updates in one pass, a rank updates some parts and gets the values and
  // states of the others from its peers.
  virtual bool IsElementwise() const { return false; }
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_OPTIMIZER_H_
