#include "nn/ops/relu.h"

#include <utility>

#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class ReluNode final : public Node {
 public:
  explicit ReluNode(Tensor y) : y_(std::move(y)) {}
  const char* name() const override { return "relu"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(y_.shape(), dy.dtype(), kernels.allocator()));
    return kernels.ReluBackward(y_, dy, dx[0]);
  }

 private:
  Tensor y_;
};

}  // namespace

Tensor Relu(Context& ctx, const Tensor& x) {
  if (!ctx.ok()) return Tensor();
  Tensor y = ctx.Empty("relu", x.shape(), x.dtype());
  ctx.Note("relu", y, 1.0 * y.numel());
  if (!ctx.computes()) return y;
  const absl::Status status = ctx.kernels().ReluForward(x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<ReluNode>(y); });
}

}  // namespace troupe::nn::ops
