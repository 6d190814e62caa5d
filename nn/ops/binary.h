// The shared front of functions of two operands.
//
//   return Binary(ctx, "div", BinaryFunction::kDivide, a, b,
//                 [&](const Tensor& y) { return MakeDivNode(a, b, y); });

#ifndef NN_OPS_BINARY_H_
#define NN_OPS_BINARY_H_

#include "nn/autograd/context.h"
#include "nn/kernels/binary.h"
#include "nn/ops/broadcast.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {

// Computes y = f(a, b), broadcast to one shape. `make_node(y)` makes the node
// `name`, and is called only if a tape needs it.
template <typename MakeNode>
Tensor Binary(Context& ctx, const char* name, BinaryFunction f, const Tensor& a,
              const Tensor& b, MakeNode make_node) {
  if (!ctx.ok()) return Tensor();
  const std::optional<Shape> shape = BroadcastShape(a.shape(), b.shape());
  if (!a.defined() || !b.defined() || !shape || a.dtype() != b.dtype()) {
    return BadShapes(ctx, name,
                     " takes two tensors of one dtype that broadcast to one "
                     "shape, got ",
                     Str(a), " and ", Str(b));
  }
  Tensor y = ctx.Empty(name, *shape, a.dtype());
  ctx.Note(name, y, 1.0 * y.numel());
  if (!ctx.computes()) return y;
  // Kernels::Add() also adds loss statistics, which are f64 on every device.
  const bool plain_sum = f == BinaryFunction::kAdd && a.shape() == b.shape();
  const absl::Status status =
      plain_sum ? ctx.kernels().Add(a, b, y) : ctx.kernels().Binary(f, a, b, y);
  return Finish(ctx, status, {a, b}, /*num_weights=*/0, y,
                [&] { return make_node(y); });
}

}  // namespace troupe::nn::ops

#endif  // NN_OPS_BINARY_H_
