#include "nn/ops/activation.h"

#include "nn/ops/unary.h"

namespace troupe::nn::ops {

Tensor LeakyRelu(Context& ctx, const Tensor& x, double slope) {
  return Unary(ctx, "leaky_relu", UnaryFunction::kLeakyRelu, slope, x);
}

Tensor Gelu(Context& ctx, const Tensor& x, GeluForm form) {
  return form == GeluForm::kExact
             ? Unary(ctx, "gelu", UnaryFunction::kGelu, 0, x)
             : Unary(ctx, "gelu_tanh", UnaryFunction::kGeluTanh, 0, x);
}

Tensor Silu(Context& ctx, const Tensor& x) {
  return Unary(ctx, "silu", UnaryFunction::kSilu, 0, x);
}

Tensor Sigmoid(Context& ctx, const Tensor& x) {
  return Unary(ctx, "sigmoid", UnaryFunction::kSigmoid, 0, x);
}

Tensor Tanh(Context& ctx, const Tensor& x) {
  return Unary(ctx, "tanh", UnaryFunction::kTanh, 0, x);
}

}  // namespace troupe::nn::ops
