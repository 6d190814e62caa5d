// Activations, element by element, as torch.nn.functional has them. Any shape;
// y has the shape and dtype of x. NaN stays NaN.
//
//   Tensor y = ops::Gelu(ctx, x, GeluForm::kTanh);
//
// Sigma is the sigmoid, Phi the distribution function of the normal
// distribution. Papers: leaky ReLU, Maas et al. 2013; GELU, Hendrycks and
// Gimpel 2016, arXiv:1606.08415; SiLU, Elfwing et al. 2017, arXiv:1702.03118.
//
// Memory: backward keeps x, for Sigmoid and Tanh y. Errors (sticky in ctx):
// kInvalidArgument if x is undefined or holds integers.

#ifndef NN_OPS_ACTIVATION_H_
#define NN_OPS_ACTIVATION_H_

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

enum class GeluForm {
  kExact,  // x Phi(x)
  kTanh,   // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), GPT-2's
};

// y = x > 0 ? x : slope x
Tensor LeakyRelu(Context& ctx, const Tensor& x, double slope = 0.01);
Tensor Gelu(Context& ctx, const Tensor& x, GeluForm form = GeluForm::kExact);
// y = x Sigma(x)
Tensor Silu(Context& ctx, const Tensor& x);
// y = 1 / (1 + e^-x)
Tensor Sigmoid(Context& ctx, const Tensor& x);
Tensor Tanh(Context& ctx, const Tensor& x);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_ACTIVATION_H_
