#include "nn/ops/rank_sum.h"

#include <memory>

#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// Returns the sum over the ranks, in memory of its own.
absl::StatusOr<Tensor> SumOf(Kernels& kernels, Collectives* peers,
                             const Tensor& part) {
  TROUPE_ASSIGN_OR_RETURN(Tensor sum, Tensor::Create(part.shape(), part.dtype(),
                                                     kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.Copy(part, sum));
  TROUPE_RETURN_IF_ERROR(AddUp(peers, sum));
  return sum;
}

// Backward adds up the gradient over `peers`; null: it is handed on.
class RankSumNode final : public Node {
 public:
  explicit RankSumNode(Collectives* peers) : peers_(peers) {}
  const char* name() const override { return "rank_sum"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    dx[0] = dy;
    if (peers_ == nullptr) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(dx[0], SumOf(kernels, peers_, dy));
    return absl::OkStatus();
  }

 private:
  Collectives* const peers_;
};

}  // namespace

Tensor RankSum(Context& ctx, const Tensor& x, absl::string_view axis) {
  Collectives* const peers = PeersAlong(ctx, axis);
  if (!ctx.ok()) return Tensor();
  if (!ctx.computes()) return x;
  absl::StatusOr<Tensor> y = SumOf(ctx.kernels(), peers, x);
  if (!y.ok()) return ctx.Fail(y.status());
  return Finish(ctx, absl::OkStatus(), {x}, /*num_weights=*/0, *y,
                [] { return std::make_unique<RankSumNode>(nullptr); });
}

Tensor RankSumOfGradient(Context& ctx, const Tensor& x,
                         absl::string_view axis) {
  Collectives* const peers = PeersAlong(ctx, axis);
  if (!ctx.ok()) return Tensor();
  if (!ctx.computes()) return x;
  Tensor y = x.Detached();
  return Finish(ctx, absl::OkStatus(), {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<RankSumNode>(peers); });
}

Collectives* PeersAlong(Context& ctx, absl::string_view axis) {
  if (!ctx.ok()) return nullptr;
  Collectives* const peers = ctx.collectives(axis);
  if (peers == nullptr && !ctx.shape_only()) {
    ctx.Fail(absl::FailedPreconditionError(
        absl::StrCat("the layer is cut along ", axis,
                     ", and the context has no collectives along it: call "
                     "Context::set_collectives(), or run the whole model")));
  }
  return peers;
}

absl::Status AddUp(Collectives* peers, const Tensor& part) {
  if (peers == nullptr || part.numel() == 0) return absl::OkStatus();
  return peers->AllReduce(ReduceOp::kSum, part);
}

}  // namespace troupe::nn::ops
