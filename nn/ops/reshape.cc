#include "nn/ops/reshape.h"

#include <utility>

#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class ReshapeNode final : public Node {
 public:
  explicit ReshapeNode(const Shape& x) : x_(x) {}
  const char* name() const override { return "reshape"; }

  absl::Status BackwardInputs(Kernels&, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    dx[0] = dy.View(x_);
    return absl::OkStatus();
  }

 private:
  const Shape x_;
};

}  // namespace

Tensor Reshape(Context& ctx, const Tensor& x, const Shape& shape) {
  if (!ctx.ok()) return Tensor();
  if (!x.defined() || shape.numel() != x.numel()) {
    return BadShapes(ctx, "reshape takes a shape of as many elements, got ",
                     Str(x), " and ", shape.ToString());
  }
  Tensor y = x.Detached().View(shape);
  ctx.Note("reshape", y, 0);
  if (!ctx.computes()) return y;
  return Finish(ctx, absl::OkStatus(), {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<ReshapeNode>(x.shape()); });
}

}  // namespace troupe::nn::ops
