// An op of one's own: its forward and its backward as plain functions.
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
// The functions fill memory that is there already: y, of shape `shape` (x's,
// unless it is set), and dx, of x's; both of x's dtype. They are not called on
// shapes alone. They may touch elements where the host may; on another device
// they call `kernels`, whose ops are in nn/kernels/kernels.h.
//
// Without a backward the op is for evaluation, and for what needs no gradient:
// where one is wanted, the forward fails.
//
// Errors: those of the functions, with the op's name; an exception is the
// module's (nn/modules/module.h). Threads: the functions are called by every
// rank that has the op, several at once, so they keep nothing that changes.

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

// What a backward may look at.
struct CustomGradient {
  const Tensor& x;
  const Tensor& y;
  const Tensor& dy;  // of y's shape
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
  // Of a forward, for plans; per element of y.
  double flops_per_element = 1;
};

Tensor Custom(Context& ctx, const CustomOp& op, const Tensor& x);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_CUSTOM_H_
