#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

absl::Status SetStepScalars(
    const Op<absl::Status(const StepScalars&, FixedOut)>&,
    const StepScalars& values, FixedOut scalars) {
  ScalarsIn(scalars) = values;
  return absl::OkStatus();
}

struct SgdUpdate {
  template <typename T>
  static absl::Status Run(const SgdRule& rule, FixedIn scalars, In grad,
                          Tensor& param, Tensor& momentum) {
    const StepScalars& step = ScalarsIn(scalars);
    if (step.non_finite != 0) return absl::OkStatus();
    const double divisor = step.loss_count * step.loss_scale;
    const double lr = step.lr * rule.lr_factor;
    const T* grads = grad.data<T>();
    T* params = param.data<T>();
    T* bufs = rule.momentum != 0 ? momentum.data<T>() : nullptr;
    for (std::int64_t i = 0; i < param.numel(); ++i) {
      const double p = Load(params[i]);
      const double mean =
          divisor == 0 ? 0 * Load(grads[i]) : Load(grads[i]) / divisor;
      double g = mean + rule.weight_decay * p;
      if (bufs) {
        const double buf = step.step == 0 ? g
                                          : rule.momentum * Load(bufs[i]) +
                                                (1 - rule.dampening) * g;
        bufs[i] = Store<T>(buf);
        g = rule.nesterov ? g + rule.momentum * buf : buf;
      }
      params[i] = Store<T>(p - lr * g);
    }
    return absl::OkStatus();
  }
};

}  // namespace

void BindOptimizer(OptimizerKernels& ops) {
  ops.SetStepScalars.BindFunction(SetStepScalars, nullptr);
  BindFloating<SgdUpdate>(ops.SgdUpdate);
}

}  // namespace troupe::nn::reference
