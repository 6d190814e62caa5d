#include "nn/ops/tokens.h"

#include <array>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/strided_loops.h"
#include "nn/ops/axis_part.h"
#include "nn/ops/linear.h"
#include "nn/ops/op_util.h"
#include "nn/ops/rank_sum.h"

namespace troupe::nn::ops {
namespace {

constexpr int kTokenAxis = 1;

// Letters: N samples, R ranks, E elements of a rank's tokens in a sample. A
// whole tensor is [N, R, E], the ranks' blocks behind each other are [R, N, E].

// Loops over a whole tensor, rank by rank, with its strides in both orders.
struct TokenOrders {
  Shape shape;  // [R, N, E]
  Strides blocks, whole;
};

TokenOrders OrdersOf(const Tensor& whole, int ranks) {
  const std::int64_t samples = whole.dim(0);
  const std::int64_t elems = whole.numel() / (samples * ranks);
  TokenOrders orders;
  orders.shape = {ranks, samples, elems};
  orders.blocks = StridesOf(orders.shape);
  orders.whole = {elems, ranks * elems, 1};
  return orders;
}

Shape WithTokens(const Shape& shape, std::int64_t tokens) {
  Shape changed = shape;
  changed.set(kTokenAxis, tokens);
  return changed;
}

absl::StatusOr<Tensor> TakenTokens(Kernels& kernels, const Tensor& whole,
                                   int coord, const Shape& own) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor part, Tensor::Create(own, whole.dtype(), kernels.allocator()));
  if (part.numel() == 0) return part;
  TROUPE_RETURN_IF_ERROR(kernels.CopyStrided(
      FromPart(whole.shape(), kTokenAxis, coord * own[kTokenAxis], own), whole,
      part));
  return part;
}

bool HasTokens(Context& ctx, const char* op, const Tensor& x) {
  if (ctx.ok() && x.shape().rank() > kTokenAxis) return true;
  if (ctx.ok()) BadShapes(ctx, op, " takes x[N, T, ...], got ", Str(x));
  return false;
}

class TakeTokensNode final : public Node {
 public:
  explicit TakeTokensNode(Collectives* peers) : peers_(peers) {}
  const char* name() const override { return "take_tokens"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(dx[0], GatheredTokens(kernels, *peers_, dy));
    return absl::OkStatus();
  }

 private:
  Collectives* const peers_;
};

class GatherTokensNode final : public Node {
 public:
  GatherTokensNode(Collectives* peers, const Shape& own, Gradient gradient)
      : peers_(peers), own_(own), gradient_(gradient) {}
  const char* name() const override { return "gather_tokens"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], gradient_ == Gradient::kParts
                   ? SummedTokens(kernels, *peers_, dy)
                   : TakenTokens(kernels, dy, peers_->rank(), own_));
    return absl::OkStatus();
  }

 private:
  Collectives* const peers_;
  const Shape own_;
  const Gradient gradient_;
};

class SumTokensNode final : public Node {
 public:
  explicit SumTokensNode(Collectives* peers) : peers_(peers) {}
  const char* name() const override { return "sum_tokens"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(dx[0], GatheredTokens(kernels, *peers_, dy));
    return absl::OkStatus();
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    return kernels.BiasBackward(AsMatrix(dy), accumulate, grads[0].grad);
  }

 private:
  Collectives* const peers_;
};

// The node of a column product, which keeps the rank's own tokens of x.
class ColumnTokensNode final : public Node {
 public:
  ColumnTokensNode(Tensor own, Tensor w, Collectives* peers)
      : own_(std::move(own)), w_(std::move(w)), peers_(peers) {}
  const char* name() const override { return "column_linear_of_tokens"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        const Tensor part,
        Tensor::Create(
            WithTokens(own_.shape(), own_.dim(kTokenAxis) * peers_->size()),
            own_.dtype(), kernels.allocator()));
    Tensor rows = AsMatrix(part);
    TROUPE_RETURN_IF_ERROR(kernels.LinearBackwardInput(AsMatrix(dy), w_, rows));
    TROUPE_ASSIGN_OR_RETURN(dx[0], SummedTokens(kernels, *peers_, part));
    return absl::OkStatus();
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    Tensor none;
    Tensor& db = grads.size() > 1 ? grads[1].grad : none;
    if (!grads[0].wanted()) {
      return kernels.BiasBackward(AsMatrix(dy), accumulate, db);
    }
    TROUPE_ASSIGN_OR_RETURN(const Tensor x,
                            GatheredTokens(kernels, *peers_, own_));
    return kernels.LinearBackwardWeight(AsMatrix(x), AsMatrix(dy), accumulate,
                                        grads[0].grad, db);
  }

 private:
  const Tensor own_, w_;
  Collectives* const peers_;
};

// Whether the operands of a product of tokens fit; otherwise fails the context.
bool CheckProduct(Context& ctx, const Tensor& x, const Tensor& w,
                  const Tensor& b) {
  if (!ctx.ok()) return false;
  if (x.shape().rank() < 3 || w.shape().rank() != 2 || x.dim(-1) != w.dim(1) ||
      x.dtype() != w.dtype() || !IsBiasOf(w, b)) {
    BadShapes(ctx,
              "linear between ranks that share tokens takes x[N, T, ..., K], "
              "w[M, K] and a bias[M] or none, of one dtype, got ",
              Str(x), ", ", Str(w), " and ", Str(b));
  }
  return ctx.ok();
}

Shape OutputOf(const Tensor& x, const Tensor& w) {
  Shape out = x.shape();
  out.set(out.rank() - 1, w.dim(0));
  return out;
}

}  // namespace

Shape OwnTokens(Context& ctx, const Shape& whole, const AxisPlace& place) {
  const std::int64_t tokens = whole[kTokenAxis];
  if (tokens % place.size == 0) {
    return WithTokens(whole, tokens / place.size);
  }
  BadShapes(ctx, "sequences of ", tokens, " tokens cannot be shared by ",
            place.size, " ranks along ", place.axis,
            "; take sequences of a multiple of ", place.size,
            ", or leave sequence parallelism out");
  return whole;
}

absl::StatusOr<Tensor> GatheredTokens(Kernels& kernels, Collectives& peers,
                                      const Tensor& own) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor whole, Tensor::Create(WithTokens(own.shape(), own.dim(kTokenAxis) *
                                                               peers.size()),
                                   own.dtype(), kernels.allocator()));
  if (whole.numel() == 0) return whole;
  if (own.dim(0) == 1) {
    TROUPE_RETURN_IF_ERROR(peers.AllGather(own, whole));
    return whole;
  }
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor blocks,
      Tensor::Create({whole.numel()}, own.dtype(), kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(peers.AllGather(own, blocks));
  const TokenOrders orders = OrdersOf(whole, peers.size());
  TROUPE_RETURN_IF_ERROR(kernels.CopyStrided(
      LoopsOver(orders.shape, orders.blocks, orders.whole), blocks, whole));
  return whole;
}

absl::StatusOr<Tensor> SummedTokens(Kernels& kernels, Collectives& peers,
                                    const Tensor& part) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor own, Tensor::Create(WithTokens(part.shape(), part.dim(kTokenAxis) /
                                                              peers.size()),
                                 part.dtype(), kernels.allocator()));
  if (own.numel() == 0) return own;
  Tensor blocks = part;
  if (part.dim(0) > 1) {
    TROUPE_ASSIGN_OR_RETURN(blocks, Tensor::Create({part.numel()}, part.dtype(),
                                                   kernels.allocator()));
    const TokenOrders orders = OrdersOf(part, peers.size());
    TROUPE_RETURN_IF_ERROR(kernels.CopyStrided(
        LoopsOver(orders.shape, orders.whole, orders.blocks), part, blocks));
  }
  TROUPE_RETURN_IF_ERROR(peers.ReduceScatter(ReduceOp::kSum, blocks, own));
  return own;
}

Tensor TakeTokens(Context& ctx, const Tensor& x, const AxisPlace& place) {
  Collectives* const peers = PeersAlong(ctx, place.axis);
  if (!HasTokens(ctx, "take_tokens", x)) return Tensor();
  const Shape own = OwnTokens(ctx, x.shape(), place);
  if (!ctx.ok()) return Tensor();
  if (!ctx.computes()) {
    Tensor y = ctx.Empty("take_tokens", own, x.dtype());
    ctx.Note("take_tokens", y, 0);
    return y;
  }
  absl::StatusOr<Tensor> y = TakenTokens(ctx.kernels(), x, peers->rank(), own);
  if (!y.ok()) return ctx.Fail(y.status());
  return Finish(ctx, absl::OkStatus(), {x}, /*num_weights=*/0, *y,
                [&] { return std::make_unique<TakeTokensNode>(peers); });
}

Tensor GatherTokens(Context& ctx, const Tensor& own, const AxisPlace& place,
                    Gradient gradient) {
  Collectives* const peers = PeersAlong(ctx, place.axis);
  if (!HasTokens(ctx, "gather_tokens", own)) return Tensor();
  if (!ctx.computes()) {
    Tensor y = ctx.Empty(
        "gather_tokens",
        WithTokens(own.shape(), own.dim(kTokenAxis) * place.size), own.dtype());
    ctx.Note("gather_tokens", y, 0);
    return y;
  }
  absl::StatusOr<Tensor> y = GatheredTokens(ctx.kernels(), *peers, own);
  if (!y.ok()) return ctx.Fail(y.status());
  return Finish(ctx, absl::OkStatus(), {own}, /*num_weights=*/0, *y, [&] {
    return std::make_unique<GatherTokensNode>(peers, own.shape(), gradient);
  });
}

Tensor SumTokens(Context& ctx, const Tensor& part, const Tensor& bias,
                 const AxisPlace& place) {
  Collectives* const peers = PeersAlong(ctx, place.axis);
  if (!HasTokens(ctx, "sum_tokens", part)) return Tensor();
  const Shape own = OwnTokens(ctx, part.shape(), place);
  if (!ctx.ok()) return Tensor();
  if (!ctx.computes()) {
    Tensor y = ctx.Empty("sum_tokens", own, part.dtype());
    ctx.Note("sum_tokens", y, 0);
    return y;
  }
  absl::StatusOr<Tensor> y = SummedTokens(ctx.kernels(), *peers, part);
  if (!y.ok()) return ctx.Fail(y.status());
  absl::Status status;
  if (bias.defined()) status = ctx.kernels().BiasForward(bias, *y);
  const std::array<Tensor, 2> inputs = {part, bias};
  const int weights = bias.defined() ? 1 : 0;
  return Finish(ctx, status, absl::MakeSpan(inputs).first(1 + weights), weights,
                *y, [&] { return std::make_unique<SumTokensNode>(peers); });
}

Tensor ColumnLinearOfTokens(Context& ctx, const Tensor& x, const Tensor& w,
                            const Tensor& b, const AxisPlace& place) {
  Collectives* const peers = PeersAlong(ctx, place.axis);
  if (!CheckProduct(ctx, x, w, b)) return Tensor();
  const std::int64_t tokens = x.dim(kTokenAxis) * place.size;
  Tensor y = ctx.Empty("linear", WithTokens(OutputOf(x, w), tokens), x.dtype());
  ctx.Note("linear", y, 2.0 * y.numel() * w.dim(1));
  if (!ctx.computes()) return y;
  const absl::StatusOr<Tensor> whole = GatheredTokens(ctx.kernels(), *peers, x);
  if (!whole.ok()) return ctx.Fail(whole.status());
  Tensor rows = AsMatrix(y);
  const absl::Status status =
      ctx.kernels().LinearForward(AsMatrix(*whole), w, b, rows);
  const std::array<Tensor, 3> inputs = {x, w, b};
  const int weights = b.defined() ? 2 : 1;
  return Finish(
      ctx, status, absl::MakeSpan(inputs).first(1 + weights), weights, y,
      [&] { return std::make_unique<ColumnTokensNode>(x, w, peers); });
}

Tensor RowLinearOfTokens(Context& ctx, const Tensor& x, const Tensor& w,
                         const Tensor& b, const AxisPlace& place) {
  if (!CheckProduct(ctx, x, w, b)) return Tensor();
  if (ctx.computes()) {
    const Tensor part = Linear(ctx, x, w, Tensor());
    return SumTokens(ctx, part, b, place);
  }
  // Nothing keeps the parts that are added up.
  PeersAlong(ctx, place.axis);
  const Shape own = OwnTokens(ctx, OutputOf(x, w), place);
  if (!ctx.ok()) return Tensor();
  Tensor y = ctx.Empty("linear", own, x.dtype());
  ctx.Note("linear", y, 2.0 * x.numel() * w.dim(0));
  return y;
}

}  // namespace troupe::nn::ops
