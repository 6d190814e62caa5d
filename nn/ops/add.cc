#include "nn/ops/add.h"

#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class AddNode final : public Node {
 public:
  const char* name() const override { return "add"; }
  absl::Status BackwardInputs(Kernels&, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    for (int i = 0; i < 2; ++i) {
      if (wanted[i]) dx[i] = dy;
    }
    return absl::OkStatus();
  }
};

}  // namespace

Tensor Add(Context& ctx, const Tensor& a, const Tensor& b) {
  if (!ctx.ok()) return Tensor();
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) {
    return BadShapes(ctx, "add takes two tensors of one shape and dtype, got ",
                     Str(a), " and ", Str(b));
  }
  Tensor y = ctx.Empty("add", a.shape(), a.dtype());
  ctx.Note("add", y, 1.0 * y.numel());
  if (!ctx.computes()) return y;
  const absl::Status status = ctx.kernels().Add(a, b, y);
  return Finish(ctx, status, {a, b}, /*num_weights=*/0, y,
                [] { return std::make_unique<AddNode>(); });
}

}  // namespace troupe::nn::ops
