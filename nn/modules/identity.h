// y = x (torch.nn.Identity), in place of a layer that a model leaves out.
//
//   Identity identity;
//   Tensor y = identity(ctx, x);

#ifndef NN_MODULES_IDENTITY_H_
#define NN_MODULES_IDENTITY_H_

#include "nn/modules/module.h"

namespace troupe::nn {

class Identity : public Module {
 public:
  Tensor Forward(Context&, const Tensor& x) override { return x; }
};

}  // namespace troupe::nn

#endif  // NN_MODULES_IDENTITY_H_
