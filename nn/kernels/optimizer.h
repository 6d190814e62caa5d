// Kernels of optimizers: they update flat ranges of parameters. Element-wise:
// an element gets the same bits wherever the range begins.
//
//   SgdStep step;
//   step.lr = 0.1;
//   status = kernels.SgdUpdate(step, grad, param, momentum);

#ifndef NN_KERNELS_OPTIMIZER_H_
#define NN_KERNELS_OPTIMIZER_H_

#include "nn/kernels/op.h"

namespace troupe::nn {

// One step of SGD as PyTorch defines it (torch.optim.SGD):
//   g = grad / divisor + weight_decay * p
//   buf = first_step ? g : momentum * buf + (1 - dampening) * g
//   g = nesterov ? g + momentum * buf : buf        (momentum != 0)
//   p = p - lr * g
// Where no target was counted (divisor 0), grad / divisor counts as 0: so are
// PyTorch's gradients of a loss that ignores all targets.
struct SgdStep {
  double lr = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first_step = true;  // no momentum buffer yet
  double divisor = 1;      // counted targets of the global batch

  double InverseDivisor() const { return divisor == 0 ? 0 : 1 / divisor; }
};

struct OptimizerKernels {
  // Ranges of equal count. `momentum` is undefined where step.momentum is 0.
  Op<absl::Status(const SgdStep& step, In grad, InOut param, InOut momentum)>
      SgdUpdate{"SgdUpdate"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = OptimizerKernels;
    VisitOps<K>(visit, &K::SgdUpdate);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_OPTIMIZER_H_
