// Dynamic loss scaling as in torch.amp.GradScaler: a step whose gradients are
// not finite is skipped and halves the scale; after growth_interval finite
// steps in a row the scale doubles. The state is in device memory, so that the
// next step has its scale before the host has any result. With a scale that
// never changes, the state counts the skipped steps.
//
//   Tensor state = Tensor::Empty({kNumLossScaleState}, DType::kF64, memory);
//   // Each step, behind SetStepScalars, and before its updates:
//   status = kernels.ApplyLossScale(state, scalars);
//   // When the step's scalars say whether its gradients are finite:
//   status = kernels.UpdateLossScale(rule, scalars, state);
//
// Source: Micikevicius et al. 2018, arXiv:1710.03740, sec. 3.2.

#ifndef NN_KERNELS_LOSS_SCALE_H_
#define NN_KERNELS_LOSS_SCALE_H_

#include <cstdint>
#include <limits>

#include "nn/kernels/step_scalars.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// The defaults of torch.amp.GradScaler.
inline constexpr double kFirstLossScale = 65536;
inline constexpr double kLossScaleGrowth = 2;
inline constexpr double kLossScaleBackoff = 0.5;
// Limit on the scale, which must be an f32.
inline constexpr double kLossScaleMax = std::numeric_limits<float>::max();

struct LossScaleRule {
  // Number of steps with finite gradients in a row after which the scale
  // doubles.
  std::int64_t growth_interval = 2000;
  // Limit below which the scale is an error of the training job: no scale helps
  // then. It is below 1, since it multiplies gradients of sums over the global
  // batch.
  double min = 0x1p-14;
  // Factor of the scale after a skipped step.
  double backoff = kLossScaleBackoff;

  // Returns the rule of a scale that never changes.
  static LossScaleRule Fixed() {
    return {std::numeric_limits<std::int64_t>::max(), /*min=*/0,
            /*backoff=*/1};
  }
};

// The tensor f64[kNumLossScaleState], as a struct.
struct LossScaleState {
  double scale = kFirstLossScale;
  double finite_steps = 0;   // consecutive, since the scale last changed
  double skipped_steps = 0;  // total number

  // Sets the scale in the step's scalars, and the optimizer's step and bias
  // corrections as if the skipped steps had not been counted.
  void ApplyTo(StepScalars& scalars) const {
    scalars.loss_scale = scale;
    if (skipped_steps != 0) scalars.CountFrom(skipped_steps);
  }

  // Updates the state after a step with these scalars.
  void Update(const LossScaleRule& rule, const StepScalars& scalars) {
    if (scalars.non_finite != 0) {
      scale *= rule.backoff;
      finite_steps = 0;
      skipped_steps += 1;
      return;
    }
    finite_steps += 1;
    if (finite_steps < static_cast<double>(rule.growth_interval)) return;
    finite_steps = 0;
    if (scale * kLossScaleGrowth <= kLossScaleMax) scale *= kLossScaleGrowth;
  }
};

// Number of elements of the tensor, and indices of some of them.
inline constexpr int kNumLossScaleState = 3;
inline constexpr int kScaleOfState = 0;
inline constexpr int kSkippedStepsOfState = 2;
static_assert(sizeof(LossScaleState) == kNumLossScaleState * sizeof(double));

// Returns the state in memory that the host, or a kernel on it, may access.
inline LossScaleState& LossScaleIn(const Tensor& state) {
  return *reinterpret_cast<LossScaleState*>(state.data<double>());
}

}  // namespace troupe::nn

#endif  // NN_KERNELS_LOSS_SCALE_H_
