// The numbers of one training step that its updates read when they run: in the
// memory of the device, f64, written in the order of the device's own work. So
// a step is enqueued to its end before its loss is known, and a recorded step
// runs again with other numbers.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       Tensor scalars,
//       Tensor::Create({kNumStepScalars}, DType::kF64, kernels.allocator()));
//   StepScalars values;
//   values.lr = 0.1;
//   status = kernels.SetStepScalars(values, scalars);
//   // Losses add to the last three, ranks add these up, updates read all.
//
// In host memory the tensor is this struct.

#ifndef NN_KERNELS_STEP_SCALARS_H_
#define NN_KERNELS_STEP_SCALARS_H_

#include "nn/tensor/tensor.h"

namespace troupe::nn {

struct StepScalars {
  double lr = 0;          // of parameters in no group
  double step = 0;        // committed steps before this one
  double loss_scale = 1;  // all gradients are multiplied by it, a power of two
  double non_finite = 0;  // where it is not 0, updates change nothing
  // Statistics of the loss (nn/ops/loss.h) over the global batch.
  double loss_sum = 0;
  double loss_count = 0;
  double loss_correct = 0;

  // What the sum of gradients is divided by. Where no target was counted, a
  // gradient counts as 0: so are PyTorch's of a loss that ignores all targets.
  double InverseDivisor() const {
    return loss_count == 0 ? 0 : 1 / (loss_count * loss_scale);
  }
};

// Elements of the tensor, and where some of them are.
inline constexpr int kNumStepScalars = 7;
inline constexpr int kNonFiniteScalar = 3;
inline constexpr int kLossScalars = 4;
static_assert(sizeof(StepScalars) == kNumStepScalars * sizeof(double));

// Those in memory that the host, or a kernel on it, may touch.
inline StepScalars& ScalarsIn(const Tensor& scalars) {
  return *reinterpret_cast<StepScalars*>(scalars.data<double>());
}

// A tensor of them in host memory, for tests and small programs.
inline Tensor HostScalars(const StepScalars& values, Allocator& allocator) {
  Tensor scalars = Tensor::Empty({kNumStepScalars}, DType::kF64, allocator);
  ScalarsIn(scalars) = values;
  return scalars;
}

}  // namespace troupe::nn

#endif  // NN_KERNELS_STEP_SCALARS_H_
