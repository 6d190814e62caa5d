// Scaled dot product attention (Vaswani et al. 2017, arXiv:1706.03762;
// torch.nn.functional.scaled_dot_product_attention); grouped-query attention if
// there are fewer heads of keys than of queries (Ainslie et al. 2023,
// arXiv:2305.13245):
//
//     y[n, t, h] = sum over s of p[s] v[n, s, g]
//     p = softmax over s of scale * q[n, t, h] . k[n, s, g]
//
// Here g = h / (Hq / Hkv).
//
//   Tensor y = ops::ScaledDotProductAttention(ctx, q, k, v);
//   // A product of all three at once, as models compute it:
//   ops::AttentionOptions options;
//   options.heads = 12;
//   options.causal = true;
//   Tensor z = ops::PackedAttention(ctx, qkv, options);
//
// q [N, T, Hq, D], k and v [N, S, Hkv, D] -> y [N, T, Hq, D], of one dtype. In
// tensors of rank 3 the heads of a position lie side by side, [N, T, Hq D];
// options.heads is then their number. qkv [N, T, (Hq + 2 Hkv) D] has the heads
// of the queries, then those of the keys, then those of the values, and y is
// [N, T, Hq D]; kernels read it in place, and write one packed gradient.
//
// Backward keeps the inputs, y and one f32 for each head of each query: nothing
// of size T S. The result of a sample does not depend on the others.
//
// A context may have a key-value cache (nn/autograd/kv_cache.h): then
// PackedAttention() of a causal qkv has the new tokens of texts alone, whose
// queries attend to the cached ones, too. Other attention has no cache.
//
// masked_attention.h takes a mask or a bias of the scores. Heads on a GPU have
// at most 128 elements.
// Errors (sticky in ctx): kInvalidArgument with the shapes, or a dropout that
// is not in [0, 1]. kFailedPrecondition: the context has no random position.

#ifndef NN_OPS_ATTENTION_H_
#define NN_OPS_ATTENTION_H_

#include <cstdint>
#include <optional>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

struct AttentionOptions {
  // Whether query t sees only keys 0 .. t, also if T and S differ (PyTorch's
  // is_causal).
  bool causal = false;
  // Factor of the scores; 1 / sqrt(D) unless given.
  std::optional<double> scale;
  // Number of heads of the queries, and of the keys and values (0: the same
  // number). Needed for packed tensors and those of rank 3, whose shapes do not
  // show it.
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  // Probability with which each p[s] is dropped in training (PyTorch's
  // dropout_p). The draws depend on the sample's number in the global batch, as
  // in ops::Dropout(); backward draws them again.
  double dropout = 0;
  // Number of the first head of the queries among those of the layer, if ranks
  // have some of its heads each: they drop what a rank with all of them drops.
  std::int64_t first_head = 0;
};

Tensor ScaledDotProductAttention(Context& ctx, const Tensor& q, const Tensor& k,
                                 const Tensor& v,
                                 const AttentionOptions& options = {});

// Queries, keys and values in one tensor: qkv [N, T, (Hq + 2 Hkv) D].
Tensor PackedAttention(Context& ctx, const Tensor& qkv,
                       const AttentionOptions& options);

// Keys and values in one tensor: q [N, T, Hq D], kv [N, S, 2 Hkv D].
Tensor PackedAttention(Context& ctx, const Tensor& q, const Tensor& kv,
                       const AttentionOptions& options);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_ATTENTION_H_
