// Kernels of optimizers: they update flat ranges of parameters. Element-wise:
// an element gets the same bits wherever the range begins.
//
//   status = kernels.SetStepScalars(values, scalars);    // lr, step, ...
//   SgdRule rule;
//   rule.momentum = 0.9;
//   status = kernels.SgdUpdate(rule, scalars, grad, param, momentum);

#ifndef NN_KERNELS_OPTIMIZER_H_
#define NN_KERNELS_OPTIMIZER_H_

#include "nn/kernels/op.h"
#include "nn/kernels/step_scalars.h"

namespace troupe::nn {

// A step of SGD as PyTorch defines it (torch.optim.SGD), with lr, step, count
// and scale as the step's scalars have them:
//     g = grad / (count * scale) + weight_decay * p
//     buf = step == 0 ? g : momentum * buf + (1 - dampening) * g
//     g = nesterov ? g + momentum * buf : buf        (momentum != 0)
//     p = p - lr * lr_factor * g
struct SgdRule {
  double lr_factor = 1;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

struct OptimizerKernels {
  // scalars = values; `scalars` f64[kNumStepScalars] wherever it appears.
  Op<absl::Status(const StepScalars& values, FixedOut scalars)> SetStepScalars{
      "SetStepScalars"};

  // Ranges of equal count. `momentum` is undefined where rule.momentum is 0.
  Op<absl::Status(const SgdRule& rule, FixedIn scalars, In grad, InOut param,
                  InOut momentum)>
      SgdUpdate{"SgdUpdate"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = OptimizerKernels;
    VisitOps<K>(visit, &K::SetStepScalars, &K::SgdUpdate);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_OPTIMIZER_H_
