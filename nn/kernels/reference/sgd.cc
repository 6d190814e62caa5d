#include "nn/kernels/reference/element.h"
#include "nn/kernels/reference/reference_impl.h"

namespace troupe::nn::reference {

absl::Status ReferenceKernels::SgdUpdate(const SgdStep& step,
                                         const Tensor& grad, Tensor& param,
                                         Tensor& momentum) {
  return ForFloating("SgdUpdate", param.dtype(), [&](auto element) {
    using T = decltype(element);
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
  });
}

}  // namespace troupe::nn::reference
