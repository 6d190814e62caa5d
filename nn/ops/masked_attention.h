// Scaled dot product attention with a mask or a bias: attn_mask of PyTorch's
// scaled_dot_product_attention.
//
//     y[n, t, h] = sum over s of p[s] v[n, s, g]
//     p = softmax over s of scale * q[n, t, h] . k[n, s, g] + bias[n, h, t, s]
//
//   ops::AttentionMask seen;
//   seen.mask = ops::KeyPaddingMask(ctx, ops::Equal(ctx, tokens, padding));
//   seen.bias = by_distance;                       // [Hq, T, S], is trained
//   Tensor y = ops::MaskedAttention(ctx, q, k, v, seen);
//
// q, k, v, y and the options are those of ScaledDotProductAttention()
// (attention.h). A query sees the keys that the mask, `causal` and the bias all
// let it see; PyTorch refuses a mask beside is_causal. A query that sees no key
// has the result 0, and no gradient passes through it, as in PyTorch 2.15.
//
// Composed of other ops: backward keeps several tensors of [N, Hq, T, S].
// Without a mask and a bias it is the op of attention.h, which keeps none. A
// dropout draws other elements than that op.
//
// Errors (sticky in ctx): kInvalidArgument with the shapes; errors of the ops.

#ifndef NN_OPS_MASKED_ATTENTION_H_
#define NN_OPS_MASKED_ATTENTION_H_

#include "nn/autograd/context.h"
#include "nn/ops/attention.h"

namespace troupe::nn::ops {

// Keys that a query sees, and a bias of their scores. Each may be undefined,
// and broadcasts to [N, Hq, T, S]: axes are aligned at the last one.
struct AttentionMask {
  // 0 hides a key; of any floating dtype, as comparisons give it (compare.h). A
  // constant. PyTorch's attn_mask of booleans: True is a 1.
  Tensor mask;
  // Added to the scores, of the dtype of q; minus infinity hides a key.
  // PyTorch's attn_mask of floating numbers; has a gradient.
  Tensor bias;
};

Tensor MaskedAttention(Context& ctx, const Tensor& q, const Tensor& k,
                       const Tensor& v, const AttentionMask& mask,
                       const AttentionOptions& options = {});

// Returns the mask [N, 1, 1, S] that hides the keys whose element of
// `padding` [N, S] is not 0, for all queries: key_padding_mask of PyTorch's
// MultiheadAttention.
Tensor KeyPaddingMask(Context& ctx, const Tensor& padding);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_MASKED_ATTENTION_H_
