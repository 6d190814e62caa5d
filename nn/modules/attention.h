// Attention layers: projections around ops::ScaledDotProductAttention.
//
//   MultiheadAttention attention(/*width=*/512, /*heads=*/8);
//   Tensor y = attention(ctx, x);                   // self, [N, T, 512]
//   TensorList z = attention.CallMany(ctx, {x, memory});       // cross
//   MultiheadAttention::Masks masks;
//   masks.key_padding_mask = padding;               // [N, S]
//   Tensor u = attention.CallMasked(ctx, {x, memory}, masks);
//
//   CausalSelfAttention block(/*width=*/768, /*heads=*/12);    // GPT-2's
//   Tensor w = block(ctx, x);
//
// The memory kept for backward grows with T, not with T^2 (nn/ops/attention.h);
// under masks it grows with T^2 (nn/ops/masked_attention.h). One dtype.
// Errors are those of the ops, with the module's path.

#ifndef NN_MODULES_ATTENTION_H_
#define NN_MODULES_ATTENTION_H_

#include <cstdint>
#include <optional>

#include "nn/modules/linear.h"
#include "nn/modules/module.h"
#include "nn/ops/attention.h"
#include "nn/ops/masked_attention.h"
#include "nn/ops/rotary.h"

namespace troupe::nn {

// Makes `options` those of the heads that the rank at `places` has, for
// Module::Localise() of a layer whose queries, keys and values come from a
// column layer: a group of heads has its head of keys with it.
//   kInvalidArgument: heads, or heads of keys, are no multiple of the number of
//     ranks along "tp".
absl::Status LocaliseHeads(absl::Span<const AxisPlace> places,
                           ops::AttentionOptions& options);

// torch.nn.MultiheadAttention(batch_first=True), Vaswani et al. 2017,
// arXiv:1706.03762, sec. 3.2.2: queries, keys and values are projected, each
// head attends, and the concatenated results are projected again. Parameters,
// with E the width:
//
//     in_proj_weight [3 E, E]   in_proj_bias [3 E]    rows of q, then k, then v
//     out_proj.weight [E, E]    out_proj.bias [E]
//
// Takes {x}, {query, memory} or {query, key, value}, [N, T, E] and [N, S, E],
// and returns [N, T, E]. One tensor costs one product and no copies.
//
// Tensor parallelism: a rank along "tp" has some of the heads, that is rows of
// in_proj_weight and columns of out_proj (nn/modules/linear.h). If ranks share
// tokens, inputs and output have the rank's own. Masks stay whole.
//
// Default initialisation as in PyTorch: Xavier's uniform for the whole
// in_proj_weight, U(-1/sqrt(E), 1/sqrt(E)) for out_proj.weight, zero biases.
class MultiheadAttention : public Module {
 public:
  struct Options {
    bool bias = true;
    // Whether query t sees only keys 0 .. t.
    bool causal = false;
    // Probability with which an attention weight is dropped in training.
    double dropout = 0;
    // Rotates queries and keys by their positions; the module sets `heads` and
    // `head_width`.
    std::optional<ops::RotaryOptions> rotary;
    DType dtype = DType::kF32;
  };
  // `heads` divides `width`.
  MultiheadAttention(std::int64_t width, std::int64_t heads)
      : MultiheadAttention(width, heads, Options()) {}
  MultiheadAttention(std::int64_t width, std::int64_t heads,
                     const Options& options);

  // Masks of one call, with the names and meanings of PyTorch's arguments. Each
  // may be undefined.
  struct Masks {
    // [N, S]: hides the keys whose element is not 0.
    Tensor key_padding_mask;
    // PyTorch's attn_mask of booleans: hides a key from a query where its
    // element is not 0. [T, S]; [N heads, T, S], whose rows are those of the
    // heads of one sample after another; or of rank 4, broadcast to
    // [N, heads, T, S].
    Tensor attn_mask;
    // PyTorch's attn_mask of floating numbers: added to the scores; minus
    // infinity hides a key. The same shapes, of the module's dtype; has a
    // gradient.
    Tensor attn_bias;
  };
  // Calls the module with masks: `xs` as above. Returns an undefined tensor
  // after an error.
  Tensor CallMasked(Context& ctx, absl::Span<const Tensor> xs,
                    const Masks& masks);

  // Takes the lists above, or what CallMasked() makes of them: query, key,
  // value and the three masks, of which some may be undefined.
  TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs) override;
  absl::Status Localise(absl::Span<const AxisPlace> places) override;

 private:
  // Applies rows [begin, end) of in_proj, counted in widths of a rank's heads.
  Tensor Project(Context& ctx, const Tensor& x, int begin, int end);
  Tensor Self(Context& ctx, const Tensor& x);
  Tensor Cross(Context& ctx, const Tensor& query, const Tensor& memory);
  Tensor Apart(Context& ctx, absl::Span<const Tensor> xs,
               const ops::AttentionMask& mask);
  // Returns the masks of this rank's heads as the op takes them.
  ops::AttentionMask MaskOf(Context& ctx, const Masks& masks) const;
  // Returns those of this rank's heads of a mask of all heads, as
  // [N, heads, T, S], and other masks as they are.
  Tensor OfHeads(Context& ctx, const Tensor& mask) const;
  // Returns x with its first `heads` heads rotated, if the options say so.
  Tensor Turn(Context& ctx, const Tensor& x, std::int64_t heads);

  const std::int64_t width_, heads_;
  const Options options_;
  ops::AttentionOptions attention_;  // counts this rank's heads
  AxisPlace tokens_;  // place along "tp", if its ranks share tokens
  Parameter& in_weight_;
  Parameter* in_bias_ = nullptr;
  Linear& out_proj_;
};

// The attention of GPT-2 (Radford et al. 2019): causal self-attention of x
// [N, T, E] -> [N, T, E]. Parameters:
//
//     c_attn.weight [3 E, E]   c_attn.bias [3 E]      rows of q, then k, then v
//     c_proj.weight [E, E]     c_proj.bias [E]
//
// Weights are [out, in], as those of Linear. Hugging Face's GPT-2 stores them
// transposed (its Conv1D): an import must transpose them.
//
// Tensor parallelism: a rank along "tp" has some of the heads, that is rows of
// c_attn and columns of c_proj (nn/modules/linear.h). If ranks share tokens, x
// and the result have the rank's own.
//
// Default initialisation as in GPT-2: N(0, 0.02), zero biases.
class CausalSelfAttention : public Module {
 public:
  struct Options {
    bool bias = true;
    double init_stddev = 0.02;
    // Standard deviation of c_proj; GPT-2 has 0.02 / sqrt(2 layers).
    double projection_init_stddev = 0.02;
    // Probability with which elements of the result are dropped in training
    // (resid_pdrop), and attention probabilities (attn_pdrop).
    double dropout = 0;
    double attention_dropout = 0;
    // Number of heads of keys and values (grouped-query attention); 0: the same
    // as of queries. c_attn then has (heads + 2 kv_heads) heads.
    std::int64_t kv_heads = 0;
    std::optional<ops::RotaryOptions> rotary;
    DType dtype = DType::kF32;
  };
  // `heads` divides `width`.
  CausalSelfAttention(std::int64_t width, std::int64_t heads)
      : CausalSelfAttention(width, heads, Options()) {}
  CausalSelfAttention(std::int64_t width, std::int64_t heads,
                      const Options& options);

  Tensor Forward(Context& ctx, const Tensor& x) override;
  absl::Status Localise(absl::Span<const AxisPlace> places) override;

 private:
  const std::int64_t head_width_;
  const Options options_;
  ops::AttentionOptions attention_;
  AxisPlace tokens_;  // place along "tp", if its ranks share tokens
  Linear& c_attn_;
  Linear& c_proj_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_ATTENTION_H_
