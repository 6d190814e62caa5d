// The numbers of one training step that its updates read when they run: in
// device memory, f64, written in the order of the device's own work. So a step
// can be enqueued to its end before its loss is known, and a recorded step can
// run again with other numbers.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       Tensor scalars,
//       Tensor::Create({kNumStepScalars}, DType::kF64, kernels.allocator()));
//   StepScalars values;
//   values.lr = 0.1;
//   status = kernels.SetStepScalars(values, scalars);
//   // Losses add to the last three, ranks add these up, updates read all.
//
// FillScalars() of an optimizer sets its fields (nn/optim/optimizer.h).
//
// The tensor in host memory has the layout of this struct.

#ifndef NN_KERNELS_STEP_SCALARS_H_
#define NN_KERNELS_STEP_SCALARS_H_

#include <algorithm>
#include <cmath>

#include "nn/tensor/tensor.h"

namespace troupe::nn {

struct StepScalars {
  double lr = 0;          // for parameters in no group
  double step = 0;        // number of updates before this one
  double loss_scale = 1;  // factor of all gradients, a power of two
  // 1 - beta1^t and 1 - beta2^t in step t, counted from 1 (AdamRule).
  double bias_correction1 = 1;
  double bias_correction2 = 1;
  double beta1 = 0, beta2 = 0;  // for those above; 0: they are 1
  double grad_factor = 1;       // clipping factor of mean gradients
  double summed = 0;            // not 0: the loss is a sum, not divided
  // Results over all gradients: if the first is not 0, updates change nothing.
  double non_finite = 0;
  double square_sum = 0;  // for the sums of gradients, not their means
  // Statistics of the loss (nn/ops/loss.h) over the global batch.
  double loss_sum = 0;
  double loss_count = 0;
  double loss_correct = 0;

  // Returns the divisor of the sum of scaled gradients; 0 if no target was
  // counted.
  double Divisor() const { return (summed != 0 ? 1 : loss_count) * loss_scale; }

  // Returns the factor of the sum of gradients. If no target was counted, a
  // gradient counts as 0, as in PyTorch for a loss that ignores all targets.
  double InverseDivisor() const {
    return Divisor() == 0 ? 0 : grad_factor / Divisor();
  }

  // Sets step and bias corrections to those of a parameter whose first update
  // was the run's update `first`, counted from 0.
  void CountFrom(double first) {
    step -= first;
    bias_correction1 = 1 - std::pow(beta1, step + 1);
    bias_correction2 = 1 - std::pow(beta2, step + 1);
  }

  // The same as the op SetClipFactor; if the norm is not a number, neither is
  // the factor.
  void SetClipFactor(double max_norm) {
    grad_factor = 1;
    const double norm = std::sqrt(square_sum) * InverseDivisor();
    grad_factor = std::min(max_norm / (norm + 1e-6), 1.0);
  }
};

// Number of elements of the tensor, and indices of some of them.
inline constexpr int kNumStepScalars = 14;
inline constexpr int kStepScalar = 1;
inline constexpr int kNonFiniteScalar = 9;
inline constexpr int kSquareSumScalar = 10;
inline constexpr int kLossScalars = 11;
static_assert(sizeof(StepScalars) == kNumStepScalars * sizeof(double));

// Returns the scalars in memory that the host, or a kernel on it, may access.
inline StepScalars& ScalarsIn(const Tensor& scalars) {
  return *reinterpret_cast<StepScalars*>(scalars.data<double>());
}

// Makes a tensor of scalars in host memory, for tests and small programs.
inline Tensor HostScalars(const StepScalars& values, Allocator& allocator) {
  Tensor scalars = Tensor::Empty({kNumStepScalars}, DType::kF64, allocator);
  ScalarsIn(scalars) = values;
  return scalars;
}

}  // namespace troupe::nn

#endif  // NN_KERNELS_STEP_SCALARS_H_
