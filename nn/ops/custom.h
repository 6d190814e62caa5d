// A custom op: its forward and its backward as plain functions.
//
//   CustomOp softsign;                                 // y = x / (1 + |x|)
//   softsign.name = "softsign";
//   softsign.forward = [](Kernels&, const Tensor& x, Tensor& y) {
//     for (std::int64_t i = 0; i < x.numel(); ++i) {
//       const float v = x.data<float>()[i];
//       y.data<float>()[i] = v / (1 + std::fabs(v));
//     }
//     return absl::OkStatus();
//   };
//   softsign.backward = [](Kernels&, const CustomGradient& g, Tensor& dx) {
//     for (std::int64_t i = 0; i < dx.numel(); ++i) {
//       const float s = 1 + std::fabs(g.x.data<float>()[i]);
//       dx.data<float>()[i] = g.dy.data<float>()[i] / (s * s);
//     }
//     return absl::OkStatus();
//   };
//   model->Append<Lambda>([softsign](Context& ctx, const Tensor& x) {
//     return ops::Custom(ctx, softsign, x);
//   });
//
// The functions fill memory that is allocated already: y, of shape `shape`
// (x's, unless it is set), and dx, of x's; both of x's dtype. They are not
// called in a shape-only forward. They may access elements if the host may; on
// another device they call `kernels`, whose ops are in nn/kernels/kernels.h.
//
// Without a backward the op is for evaluation, and for inputs that need no
// gradient: if one is needed, the forward fails.
//
// Errors: those of the functions, with the op's name; an exception becomes an
// error of the module (nn/modules/module.h). Threads: every rank that has the
// op calls the functions, several at once, so they must not change shared
// state.

#ifndef NN_OPS_CUSTOM_H_
#define NN_OPS_CUSTOM_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/autograd/context.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::ops {

// Tensors that a backward may read.
struct CustomGradient {
  const Tensor& x;
  const Tensor& y;
  const Tensor& dy;  // has y's shape
};

struct CustomOp {
  std::string name = "custom";  // for errors and tables
  std::function<absl::Status(Kernels& kernels, const Tensor& x, Tensor& y)>
      forward;
  // Null: no gradient.
  std::function<absl::Status(Kernels& kernels, const CustomGradient& gradient,
                             Tensor& dx)>
      backward;
  // The shape of y; null: that of x.
  std::function<absl::StatusOr<Shape>(const Shape& x)> shape;
  // FLOPs of a forward per element of y, for plans.
  double flops_per_element = 1;
};

Tensor Custom(Context& ctx, const CustomOp& op, const Tensor& x);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_CUSTOM_H_
