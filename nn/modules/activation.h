// Activations (torch.nn.LeakyReLU, GELU, SiLU, Sigmoid, Tanh, Softmax); ReLU is
// in relu.h. nn/ops/activation.h and softmax.h have the formulas.
//
//   GELU gelu(ops::GeluForm::kTanh);
//   Tensor y = gelu(ctx, x);
//
// None has parameters, and y has the shape of x.

#ifndef NN_MODULES_ACTIVATION_H_
#define NN_MODULES_ACTIVATION_H_

#include "nn/modules/module.h"
#include "nn/ops/activation.h"
#include "nn/ops/softmax.h"

namespace troupe::nn {

class LeakyReLU : public Module {
 public:
  explicit LeakyReLU(double negative_slope = 0.01)
      : negative_slope_(negative_slope) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::LeakyRelu(ctx, x, negative_slope_);
  }

 private:
  const double negative_slope_;
};

class GELU : public Module {
 public:
  explicit GELU(ops::GeluForm form = ops::GeluForm::kExact) : form_(form) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Gelu(ctx, x, form_);
  }

 private:
  const ops::GeluForm form_;
};

class SiLU : public Module {
 public:
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Silu(ctx, x);
  }
};

class Sigmoid : public Module {
 public:
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Sigmoid(ctx, x);
  }
};

class Tanh : public Module {
 public:
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Tanh(ctx, x);
  }
};

class Softmax : public Module {
 public:
  explicit Softmax(int axis = -1) : axis_(axis) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Softmax(ctx, x, axis_);
  }

 private:
  const int axis_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_ACTIVATION_H_
