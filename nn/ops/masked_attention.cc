#include "nn/ops/masked_attention.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/check.h"
#include "nn/kernels/strided_loops.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/compare.h"
#include "nn/ops/dropout.h"
#include "nn/ops/expand.h"
#include "nn/ops/matmul.h"
#include "nn/ops/op_util.h"
#include "nn/ops/permute.h"
#include "nn/ops/reshape.h"
#include "nn/ops/scalar_like.h"
#include "nn/ops/softmax.h"
#include "nn/ops/triangle.h"
#include "nn/ops/where.h"

namespace troupe::nn::ops {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// Sizes of q [N, T, Hq, D] and of k and v [N, S, Hkv, D].
struct Sizes {
  std::int64_t N, T, S, Hq, Hkv, D;

  Shape Scores() const { return {N, Hq, T, S}; }
};

// Whether x is [N, T, heads, D] or [N, T, heads D].
bool HasHeads(const Tensor& x, std::int64_t heads) {
  return (x.shape().rank() == 4 && x.dim(2) == heads) ||
         (x.shape().rank() == 3 && heads > 0 && x.dim(2) % heads == 0);
}

// Returns the sizes, or none if the operands do not fit together.
std::optional<Sizes> SizesOf(const Tensor& q, const Tensor& k, const Tensor& v,
                             const AttentionOptions& options) {
  for (const Tensor* x : {&q, &k, &v}) {
    if (!x->defined() || x->dtype() != q.dtype() ||
        x->shape().rank() != q.shape().rank()) {
      return std::nullopt;
    }
  }
  std::int64_t Hq = options.heads;
  std::int64_t Hkv = options.kv_heads > 0 ? options.kv_heads : options.heads;
  // Tensors of rank 4 show the numbers in their shapes.
  if (Hq == 0 && q.shape().rank() == 4) {
    Hq = q.dim(2);
    Hkv = k.dim(2);
  }
  if (Hq < 1 || Hkv < 1 || Hq % Hkv != 0 || !HasHeads(q, Hq) ||
      !HasHeads(k, Hkv) || k.shape() != v.shape() || k.dim(0) != q.dim(0) ||
      k.dim(1) == 0) {
    return std::nullopt;
  }
  const std::int64_t D = q.shape().rank() == 4 ? q.dim(3) : q.dim(2) / Hq;
  if ((k.shape().rank() == 4 ? k.dim(3) : k.dim(2) / Hkv) != D) {
    return std::nullopt;
  }
  return Sizes{q.dim(0), q.dim(1), k.dim(1), Hq, Hkv, D};
}

bool BroadcastsTo(const Tensor& x, const Shape& shape) {
  const std::optional<Shape> both = BroadcastShape(x.shape(), shape);
  return both && *both == shape;
}

// Fails the context if the mask or the bias does not fit.
void CheckMask(Context& ctx, const Tensor& q, const AttentionMask& mask,
               const Shape& scores) {
  if (mask.mask.defined() &&
      (!IsFloating(mask.mask.dtype()) || !BroadcastsTo(mask.mask, scores))) {
    BadShapes(ctx,
              "attention takes a mask of floating numbers that broadcasts ",
              "to [N, Hq, T, S], ", scores.ToString(), ", got ", Str(mask.mask),
              "; reshape it, or compare it with 0");
  }
  if (mask.bias.defined() &&
      (mask.bias.dtype() != q.dtype() || !BroadcastsTo(mask.bias, scores))) {
    BadShapes(ctx, "attention takes a bias of the dtype of q, ",
              DTypeName(q.dtype()), ", that broadcasts to [N, Hq, T, S], ",
              scores.ToString(), ", got ", Str(mask.bias),
              "; cast or reshape it");
  }
}

// Returns x as [N, groups, heads / groups, T, D], of which the product of
// queries and keys broadcasts the third axis.
Tensor ByGroup(Context& ctx, const Tensor& x, const Sizes& size,
               std::int64_t heads) {
  const std::int64_t positions = x.dim(1);
  const Tensor split = Reshape(ctx, x, {size.N, positions, heads, size.D});
  const Tensor turned = Permute(ctx, split, {0, 2, 1, 3});
  return Reshape(ctx, turned,
                 {size.N, size.Hkv, heads / size.Hkv, positions, size.D});
}

// Returns the scores with minus infinity where a key is hidden.
Tensor HideKeys(Context& ctx, Tensor scores, const AttentionMask& mask,
                const AttentionOptions& options) {
  if (mask.bias.defined()) scores = Add(ctx, scores, mask.bias);
  if (mask.mask.defined()) scores = Where(ctx, mask.mask, scores, kHidden);
  if (options.causal) {
    const Tensor one = ScalarLike(ctx, "attention", scores.Detached(), 1);
    if (!ctx.ok()) return Tensor();
    const Tensor all = Expand(ctx, one, {scores.dim(2), scores.dim(3)});
    scores = MaskedFill(ctx, scores, Triu(ctx, all, /*diagonal=*/1), kHidden);
  }
  return scores;
}

// Returns the softmax of the scores [N, Hq, T, S], and 0 for hidden keys: of a
// query that sees none, the softmax is NaN. The fill before it keeps the
// gradient of such a row from the scores.
Tensor Probabilities(Context& ctx, const Tensor& scores) {
  const Tensor hidden = Equal(ctx, scores, kHidden);
  const Tensor p = Softmax(ctx, MaskedFill(ctx, scores, hidden, kHidden));
  return MaskedFill(ctx, p, hidden, 0);
}

}  // namespace

Tensor MaskedAttention(Context& ctx, const Tensor& q, const Tensor& k,
                       const Tensor& v, const AttentionMask& mask,
                       const AttentionOptions& options) {
  if (!ctx.ok()) return Tensor();
  const std::optional<Sizes> size = SizesOf(q, k, v, options);
  if (!mask.mask.defined() && !mask.bias.defined()) {
    return ScaledDotProductAttention(ctx, q, k, v, options);
  }
  if (!size) {
    // The op without a mask takes the same operands, and has the errors.
    ScaledDotProductAttention(ctx, q, k, v, options);
    TROUPE_CHECK(!ctx.ok(), "operands fit attention only without a mask");
    return Tensor();
  }
  CheckMask(ctx, q, mask, size->Scores());
  if (!ctx.ok()) return Tensor();
  const Tensor queries = ByGroup(ctx, q, *size, size->Hq);
  const Tensor keys = ByGroup(ctx, k, *size, size->Hkv);
  const Tensor values = ByGroup(ctx, v, *size, size->Hkv);
  const double scale =
      options.scale.value_or(1 / std::sqrt(static_cast<double>(size->D)));
  const Tensor products = Scale(
      ctx,
      MatMul(ctx, queries, keys, {/*transpose_a=*/false, /*transpose_b=*/true}),
      scale);
  const Tensor scores = Reshape(ctx, products, size->Scores());
  if (!ctx.ok()) return Tensor();
  PartOfSample own_heads;
  own_heads.first = options.first_head * size->T * size->S;
  const Tensor p = DropoutOfPart(
      ctx, Probabilities(ctx, HideKeys(ctx, scores, mask, options)),
      options.dropout, own_heads);
  const Tensor grouped = Reshape(
      ctx, p, {size->N, size->Hkv, size->Hq / size->Hkv, size->T, size->S});
  const Tensor heads = Reshape(ctx, MatMul(ctx, grouped, values),
                               {size->N, size->Hq, size->T, size->D});
  return Reshape(ctx, Permute(ctx, heads, {0, 2, 1, 3}), q.shape());
}

Tensor KeyPaddingMask(Context& ctx, const Tensor& padding) {
  if (!ctx.ok()) return Tensor();
  if (!padding.defined() || padding.shape().rank() != 2) {
    return BadShapes(ctx, "key_padding_mask takes padding[N, S], got ",
                     Str(padding), "; give it a row for each sample");
  }
  return Reshape(ctx, Equal(ctx, padding, 0),
                 {padding.dim(0), 1, 1, padding.dim(1)});
}

}  // namespace troupe::nn::ops
