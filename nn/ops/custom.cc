#include "nn/ops/custom.h"

#include <utility>

#include "base/field_error.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

absl::Status InOp(const CustomOp& op, const absl::Status& status) {
  if (status.ok()) return status;
  return base::WithMessage(status,
                           absl::StrCat(op.name, ": ", status.message()));
}

class CustomNode final : public Node {
 public:
  CustomNode(const CustomOp& op, const Tensor& x, const Tensor& y)
      : op_(op), x_(x.Detached()), y_(y) {}
  const char* name() const override { return op_.name.c_str(); }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_.shape(), x_.dtype(), kernels.allocator()));
    return InOp(op_, op_.backward(kernels, {x_, y_, dy}, dx[0]));
  }

 private:
  const CustomOp op_;
  const Tensor x_, y_;
};

}  // namespace

Tensor Custom(Context& ctx, const CustomOp& op, const Tensor& x) {
  if (!ctx.ok()) return Tensor();
  if (!x.defined() || op.forward == nullptr) {
    return BadShapes(ctx, op.name, " takes a tensor and has a forward, got ",
                     Str(x), op.forward ? "" : " and none");
  }
  absl::StatusOr<Shape> shape = x.shape();
  if (op.shape != nullptr) shape = op.shape(x.shape());
  if (!shape.ok()) return ctx.Fail(InOp(op, shape.status()));
  Tensor y = ctx.Empty(op.name.c_str(), *shape, x.dtype());
  ctx.Note(op.name.c_str(), y, op.flops_per_element * shape->numel());
  if (!ctx.computes()) return y;
  if (op.backward == nullptr && ctx.Tracks({x})) {
    return BadShapes(ctx, op.name, " has no backward, but ", Str(x),
                     " needs a gradient");
  }
  const absl::Status status = op.forward(ctx.kernels(), x.Detached(), y);
  return Finish(ctx, InOp(op, status), {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<CustomNode>(op, x, y); });
}

}  // namespace troupe::nn::ops
