// (N, ...) -> (N, the rest) in C, H, W order (torch.nn.Flatten).
//
//   Flatten flatten;
//   Tensor rows = flatten(ctx, images);

#ifndef NN_MODULES_FLATTEN_H_
#define NN_MODULES_FLATTEN_H_

#include "nn/modules/module.h"
#include "nn/ops/flatten.h"

namespace troupe::nn {

class Flatten : public Module {
 public:
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Flatten(ctx, x);
  }
};

}  // namespace troupe::nn

#endif  // NN_MODULES_FLATTEN_H_
