// Drops elements at random in training (torch.nn.Dropout).
//
//   Dropout dropout(0.1);
//   Tensor y = dropout(ctx, x);        // x itself in evaluation

#ifndef NN_MODULES_DROPOUT_H_
#define NN_MODULES_DROPOUT_H_

#include "nn/modules/module.h"
#include "nn/ops/dropout.h"

namespace troupe::nn {

class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Dropout(ctx, x, p_);
  }

 private:
  const double p_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_DROPOUT_H_
