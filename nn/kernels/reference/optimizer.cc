#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

struct SgdUpdate {
  template <typename T>
  static absl::Status Run(const SgdStep& step, In grad, Tensor& param,
                          Tensor& momentum) {
    const T* grads = grad.data<T>();
    T* params = param.data<T>();
    T* bufs = step.momentum != 0 ? momentum.data<T>() : nullptr;
    for (std::int64_t i = 0; i < param.numel(); ++i) {
      const double p = Load(params[i]);
      const double mean = step.divisor == 0 ? 0 * Load(grads[i])
                                            : Load(grads[i]) / step.divisor;
      double g = mean + step.weight_decay * p;
      if (bufs) {
        const double buf = step.first_step ? g
                                           : step.momentum * Load(bufs[i]) +
                                                 (1 - step.dampening) * g;
        bufs[i] = Store<T>(buf);
        g = step.nesterov ? g + step.momentum * buf : buf;
      }
      params[i] = Store<T>(p - step.lr * g);
    }
    return absl::OkStatus();
  }
};

}  // namespace

void BindOptimizer(OptimizerKernels& ops) {
  BindFloating<SgdUpdate>(ops.SgdUpdate);
}

}  // namespace troupe::nn::reference
