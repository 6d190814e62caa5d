#include "nn/ops/attention.h"

#include <array>
#include <cmath>
#include <utility>

#include "nn/autograd/kv_cache.h"
#include "nn/ops/cached_attention.h"
#include "nn/ops/dropout.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// The operands q, k and v; the last one or two may be packed into the one
// before (nn/kernels/attention.h).
using Operands = std::array<Tensor, 3>;

// Limit on the blocks of draws at one position (nn/random/philox.h).
constexpr std::int64_t kBlocksMax = std::int64_t{1} << 32;

int CountOf(const Operands& operands) {
  return operands[2].defined() ? 3 : operands[1].defined() ? 2 : 1;
}

class AttentionNode final : public Node {
 public:
  // `heads`: views [N, T, H, D] of the inputs, whose shapes are `shapes`.
  AttentionNode(const AttentionRule& rule, Operands heads,
                std::array<Shape, 3> shapes, Tensor y, Tensor lse)
      : rule_(rule),
        heads_(std::move(heads)),
        shapes_(std::move(shapes)),
        y_(std::move(y)),
        lse_(std::move(lse)) {}
  const char* name() const override { return "attention"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    Operands gradients;
    for (std::size_t i = 0; i < dx.size(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(
          dx[i],
          Tensor::Create(shapes_[i], heads_[i].dtype(), kernels.allocator()));
      gradients[i] = dx[i].View(heads_[i].shape());
    }
    return kernels.AttentionBackward(rule_, heads_[0], heads_[1], heads_[2], y_,
                                     lse_, dy.View(y_.shape()), gradients[0],
                                     gradients[1], gradients[2]);
  }

 private:
  const AttentionRule rule_;
  const Operands heads_;
  const std::array<Shape, 3> shapes_;
  const Tensor y_, lse_;
};

// Views x as [N, T, count, D]; undefined if it does not fit.
Tensor AsHeads(const Tensor& x, std::int64_t count) {
  if (x.shape().rank() == 4 && x.dim(2) == count) return x;
  if (x.shape().rank() == 3 && count > 0 && x.dim(2) % count == 0) {
    return x.View({x.dim(0), x.dim(1), count, x.dim(2) / count});
  }
  return Tensor();
}

struct HeadCounts {
  std::int64_t q = 0, kv = 0;
};

HeadCounts CountHeads(const Operands& operands,
                      const AttentionOptions& options) {
  HeadCounts heads{options.heads,
                   options.kv_heads > 0 ? options.kv_heads : options.heads};
  // Tensors of rank 4 that are not packed show the numbers in their shapes.
  if (heads.q == 0 && CountOf(operands) == 3 &&
      operands[0].shape().rank() == 4 && operands[1].shape().rank() == 4) {
    heads.q = operands[0].dim(2);
    heads.kv = operands[1].dim(2);
  }
  return heads;
}

// Views the operands as [N, T, heads, D]; false if they do not fit together.
bool ViewAsHeads(const Operands& operands, const HeadCounts& heads,
                 Operands& views) {
  const int count = CountOf(operands);
  if (heads.q < 1 || heads.kv < 1 || heads.q % heads.kv != 0) return false;
  for (int i = 0; i < count; ++i) {
    const std::int64_t own = i == 0 ? heads.q : heads.kv;
    const std::int64_t others = i == 0 ? 2 * heads.kv : heads.kv;
    const bool holds_the_rest = i == count - 1 && count < 3;
    views[i] = AsHeads(operands[i], holds_the_rest ? own + others : own);
    if (!views[i].defined() || views[i].dim(0) != views[0].dim(0) ||
        views[i].dim(3) != views[0].dim(3) ||
        operands[i].dtype() != operands[0].dtype() ||
        operands[i].shape().rank() != operands[0].shape().rank()) {
      return false;
    }
  }
  return count < 3 || views[1].dim(1) == views[2].dim(1);
}

Tensor FailShapes(Context& ctx, const Operands& operands,
                  const HeadCounts& heads) {
  static constexpr const char* kTakes[] = {
      "qkv[N, T, (Hq + 2 Hkv) D]", "q[N, T, Hq D] and kv[N, S, 2 Hkv D]",
      "q[N, T, Hq, D], k[N, S, Hkv, D] and v[N, S, Hkv, D]"};
  const int count = CountOf(operands);
  std::string got = Str(operands[0]);
  for (int i = 1; i < count; ++i) {
    absl::StrAppend(&got, i == count - 1 ? " and " : ", ", Str(operands[i]));
  }
  return BadShapes(ctx, "attention takes ", kTakes[count - 1],
                   " of one dtype, Hkv a divisor of Hq, got ", got, " with ",
                   heads.q, " and ", heads.kv, " heads");
}

// Returns the multiplications and additions of both products.
double FlopsOf(const AttentionRule& rule, const AttentionSizes& size) {
  double pairs = 0;
  for (std::int64_t t = 0; t < size.T; ++t) pairs += rule.KeysSeen(t, size.S);
  return 4.0 * size.N * size.Hq * size.D * pairs;
}

// Fails the context if dropout has no draw for each probability.
void CheckDraws(Context& ctx, const AttentionSizes& size,
                std::int64_t first_head) {
  const std::int64_t heads = first_head + size.Hq;
  if (size.BlocksBefore(heads, 0) <= kBlocksMax) return;
  BadShapes(ctx, "attention with dropout has at most 2^34 probabilities ",
            "in a sample, got ", heads, " heads of ", size.T, " queries and ",
            size.S, " keys");
}

// Computes the result in y and lse, and records the node.
Tensor Compute(Context& ctx, const Operands& operands, const Operands& views,
               const AttentionRule& rule, Tensor y, Tensor y_heads,
               Tensor lse) {
  const absl::Status status = ctx.kernels().AttentionForward(
      rule, views[0], views[1], views[2], y_heads, lse);
  const int count = CountOf(operands);
  return Finish(ctx, status, absl::MakeConstSpan(operands).first(count),
                /*num_weights=*/0, y, [&] {
                  std::array<Shape, 3> shapes;
                  for (int i = 0; i < count; ++i)
                    shapes[i] = operands[i].shape();
                  return std::make_unique<AttentionNode>(rule, views, shapes,
                                                         y_heads, lse);
                });
}

Tensor Attention(Context& ctx, const Operands& operands,
                 const AttentionOptions& options) {
  if (!ctx.ok()) return Tensor();
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    return BadShapes(ctx, "attention takes a dropout in [0, 1], got ",
                     options.dropout);
  }
  const HeadCounts heads = CountHeads(operands, options);
  Operands views;
  if (!ViewAsHeads(operands, heads, views)) {
    return FailShapes(ctx, operands, heads);
  }
  const Tensor& q = operands[0];
  const std::int64_t N = q.dim(0), T = q.dim(1), D = views[0].dim(3);
  if (views[1].defined() && views[1].dim(1) == 0) {
    return BadShapes(ctx, "attention takes at least one key, got ",
                     Str(operands[1]));
  }
  AttentionRule rule;
  rule.causal = options.causal;
  rule.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(D)));
  if (ctx.kv_cache() != nullptr && CountOf(operands) == 1 && rule.causal &&
      q.shape().rank() == 3) {
    return CachedAttention(ctx, views[0], heads.q, heads.kv, rule.scale);
  }
  const Shape out_heads = {N, T, heads.q, D};
  Tensor y = ctx.Empty(
      "attention", q.shape().rank() == 4 ? out_heads : Shape{N, T, heads.q * D},
      q.dtype());
  Tensor lse = ctx.Empty("attention", {N, heads.q, T}, DType::kF32);
  if (!ctx.ok()) return Tensor();
  Tensor y_heads = y.View(out_heads);
  const AttentionSizes size =
      SizesOfAttention(views[0], views[1], views[2], y_heads);
  ctx.Note("attention", y, FlopsOf(rule, size));
  const bool drops = ctx.training() && options.dropout > 0;
  if (drops) CheckDraws(ctx, size, options.first_head);
  if (!ctx.ok()) return Tensor();
  if (!ctx.computes()) return y;
  if (drops && options.dropout == 1) {
    // A draw is always below 2^32: everything is dropped.
    const absl::Status zeroed = ctx.kernels().Fill(0.0, y);
    return zeroed.ok() ? y : ctx.Fail(zeroed);
  }
  if (drops) rule.dropout = DrawMask(ctx, options.dropout);
  if (!ctx.ok()) return Tensor();
  if (drops) rule.dropout->first = 4 * size.BlocksBefore(options.first_head, 0);
  return Compute(ctx, operands, views, rule, y, y_heads, lse);
}

}  // namespace

Tensor ScaledDotProductAttention(Context& ctx, const Tensor& q, const Tensor& k,
                                 const Tensor& v,
                                 const AttentionOptions& options) {
  if (!ctx.ok()) return Tensor();
  if (!q.defined() || !k.defined() || !v.defined()) {
    return BadShapes(ctx, "attention takes q, k and v, got ", Str(q), ", ",
                     Str(k), " and ", Str(v));
  }
  return Attention(ctx, {q, k, v}, options);
}

Tensor PackedAttention(Context& ctx, const Tensor& qkv,
                       const AttentionOptions& options) {
  return Attention(ctx, {qkv, Tensor(), Tensor()}, options);
}

Tensor PackedAttention(Context& ctx, const Tensor& q, const Tensor& kv,
                       const AttentionOptions& options) {
  if (!ctx.ok()) return Tensor();
  if (!kv.defined()) {
    return BadShapes(ctx, "attention takes q and kv, got ", Str(q), " and ",
                     Str(kv));
  }
  return Attention(ctx, {q, kv, Tensor()}, options);
}

}  // namespace troupe::nn::ops
