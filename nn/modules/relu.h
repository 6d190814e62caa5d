// max(x, 0) (torch.nn.ReLU).
//
//   ReLU relu;
//   Tensor y = relu(ctx, x);

#ifndef NN_MODULES_RELU_H_
#define NN_MODULES_RELU_H_

#include "nn/modules/module.h"
#include "nn/ops/relu.h"

namespace troupe::nn {

class ReLU : public Module {
 public:
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Relu(ctx, x);
  }
};

}  // namespace troupe::nn

#endif  // NN_MODULES_RELU_H_
