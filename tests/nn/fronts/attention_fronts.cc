// Cases of the fronts of attention and of positions, and of parameters that
// several ops read in part or twice.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "nn/ops/add.h"
#include "nn/ops/attention.h"
#include "nn/ops/compare.h"
#include "nn/ops/embedding.h"
#include "nn/ops/linear.h"
#include "nn/ops/masked_attention.h"
#include "nn/ops/rotary.h"
#include "nn/ops/where.h"
#include "tests/nn/fronts/front_case.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

FrontCase Apart(const std::string& name, const Shape& q, const Shape& kv,
                const ops::AttentionOptions& options) {
  return {"attention_" + name,
          {q, kv, kv},
          {},
          [options](Context& ctx, const Tensors& v) {
            return ops::ScaledDotProductAttention(ctx, v[0], v[1], v[2],
                                                  options);
          }};
}

ops::AttentionOptions Heads(std::int64_t heads, std::int64_t kv_heads,
                            bool causal) {
  ops::AttentionOptions options;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.causal = causal;
  return options;
}

std::vector<FrontCase> AttentionCases() {
  ops::AttentionOptions plain, causal, scaled;
  causal.causal = true;
  scaled.scale = -0.75;
  return {
      Apart("plain", {2, 5, 2, 4}, {2, 3, 2, 4}, plain),
      Apart("causal", {1, 6, 2, 3}, {1, 6, 2, 3}, causal),
      Apart("causal_more_keys", {1, 3, 1, 4}, {1, 5, 1, 4}, causal),
      Apart("causal_more_queries", {1, 5, 1, 4}, {1, 3, 1, 4}, causal),
      Apart("grouped", {2, 3, 4, 2}, {2, 4, 2, 2}, plain),
      Apart("scaled", {1, 4, 1, 2}, {1, 4, 1, 2}, scaled),
      Apart("of_rank_3", {2, 3, 6}, {2, 4, 3}, Heads(2, 1, false)),
      {"attention_packed",
       {{2, 5, 3 * 2 * 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::PackedAttention(ctx, v[0], Heads(2, 0, true));
       }},
      {"attention_packed_grouped",
       {{1, 4, 4 + 2, 3}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::PackedAttention(ctx, v[0], Heads(4, 1, true));
       }},
      {"attention_keys_and_values_packed",
       {{2, 3, 4}, {2, 5, 8}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::PackedAttention(ctx, v[0], v[1], Heads(2, 2, false));
       }},
  };
}

Tensor Constant(Context& ctx, const Shape& shape, DType dtype,
                const std::vector<double>& values) {
  return MakeTensor(shape, dtype, values, ctx.kernels().allocator());
}

// The second query sees no key.
Tensor SomeKeys(Context& ctx, const Tensors& v) {
  ops::AttentionMask seen;
  seen.mask = Constant(ctx, {3, 5}, v[0].dtype(),
                       {1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1});
  return ops::MaskedAttention(ctx, v[0], v[1], v[2], seen);
}

// A bias for each head, of which one query of a head sees no key.
Tensor Biased(Context& ctx, const Tensors& v) {
  constexpr double kHides = -std::numeric_limits<double>::infinity();
  std::vector<double> hidden(2 * 3 * 4, 0);
  hidden[5] = kHides;
  for (int i = 12; i < 16; ++i) hidden[i] = kHides;
  ops::AttentionMask seen;
  seen.bias =
      ops::Add(ctx, v[3], Constant(ctx, {2, 3, 4}, v[0].dtype(), hidden));
  ops::AttentionOptions options;
  options.scale = 0.75;
  return ops::MaskedAttention(ctx, v[0], v[1], v[2], seen, options);
}

// A mask of f32 in any dtype, a bias that is broadcast, fewer heads of keys.
Tensor MaskedAndBiased(Context& ctx, const Tensors& v) {
  ops::AttentionMask seen;
  seen.mask =
      Constant(ctx, {2, 1, 1, 5}, DType::kF32, {0, 1, 1, 1, 1, 1, 1, 0, 1, 1});
  seen.bias = v[3];
  ops::AttentionOptions options;
  options.causal = true;
  return ops::MaskedAttention(ctx, v[0], v[1], v[2], seen, options);
}

Tensor PaddedKeys(Context& ctx, const Tensors& v) {
  ops::AttentionMask seen;
  seen.mask = ops::KeyPaddingMask(
      ctx, Constant(ctx, {2, 4}, DType::kI64, {0, 0, 0, 1, 0, 1, 1, 1}));
  return ops::MaskedAttention(ctx, v[0], v[1], v[2], seen,
                              Heads(2, 1, /*causal=*/false));
}

std::vector<FrontCase> MaskedCases() {
  return {
      {"attention_mask",
       {{2, 3, 2, 4}, {2, 5, 2, 4}, {2, 5, 2, 4}},
       {},
       SomeKeys},
      {"attention_bias",
       {{2, 3, 2, 2}, {2, 4, 2, 2}, {2, 4, 2, 2}, {2, 3, 4}},
       {},
       Biased},
      {"attention_mask_and_bias",
       {{2, 4, 4, 2}, {2, 5, 2, 2}, {2, 5, 2, 2}, {4, 1, 5}},
       {},
       MaskedAndBiased},
      {"attention_key_padding",
       {{2, 3, 6}, {2, 4, 3}, {2, 4, 3}},
       {},
       PaddedKeys},
  };
}

FrontCase Rotary(const std::string& name, const Shape& x,
                 const ops::RotaryOptions& options) {
  return {"rotary_" + name, {x}, {}, [options](Context& ctx, const Tensors& v) {
            return ops::Rotary(ctx, v[0], options);
          }};
}

// torch.nn.MultiheadAttention of 2 heads, with its layout of weights.
Tensor Multihead(Context& ctx, const Tensor& query, const Tensor& memory,
                 const Tensor* w) {
  const ops::AttentionOptions options = Heads(2, 2, false);
  const std::int64_t width = query.dim(2);
  const Tensor q = ops::LinearRows(ctx, query, w[0], w[1], 0, width);
  const Tensor kv = ops::LinearRows(ctx, memory, w[0], w[1], width, 3 * width);
  return ops::Linear(ctx, ops::PackedAttention(ctx, q, kv, options), w[2],
                     w[3]);
}

// The same with a key_padding_mask and an attn_mask.
Tensor MaskedMultihead(Context& ctx, const Tensors& v) {
  ops::AttentionMask seen;
  const Tensor hidden = Constant(ctx, {3, 5}, DType::kI64,
                                 {0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1});
  const Tensor padding =
      Constant(ctx, {2, 5}, DType::kI64, {0, 0, 0, 0, 1, 0, 0, 0, 1, 1});
  seen.mask = ops::Where(ctx, ops::Equal(ctx, hidden, 0),
                         ops::KeyPaddingMask(ctx, padding), 0.0);
  const Tensor q = ops::LinearRows(ctx, v[0], v[2], v[3], 0, 4);
  const Tensor key = ops::LinearRows(ctx, v[1], v[2], v[3], 4, 8);
  const Tensor value = ops::LinearRows(ctx, v[1], v[2], v[3], 8, 12);
  return ops::Linear(
      ctx, ops::MaskedAttention(ctx, q, key, value, seen, Heads(2, 2, false)),
      v[4], v[5]);
}

std::vector<FrontCase> MultiheadCases() {
  return {
      {"multihead_attention",
       {{2, 3, 4}, {2, 5, 4}},
       {{12, 4}, {12}, {4, 4}, {4}},
       [](Context& ctx, const Tensors& v) {
         return Multihead(ctx, v[0], v[1], &v[2]);
       }},
      {"multihead_attention_of_itself",
       {{2, 3, 4}},
       {{12, 4}, {12}, {4, 4}, {4}},
       [](Context& ctx, const Tensors& v) {
         return Multihead(ctx, v[0], v[0], &v[1]);
       }},
      {"multihead_attention_masked",
       {{2, 3, 4}, {2, 5, 4}},
       {{12, 4}, {12}, {4, 4}, {4}},
       MaskedMultihead},
  };
}

std::vector<FrontCase> PositionCases() {
  ops::RotaryOptions halves, pairs, part;
  pairs.interleaved = true;
  pairs.first = 7;
  part.base = 100;
  part.width = 4;
  part.heads = 1;
  part.head_width = 5;
  return {
      Rotary("halves", {2, 3, 2, 6}, halves),
      Rotary("pairs", {1, 4, 1, 6}, pairs),
      Rotary("part", {2, 3, 2 * 5}, part),
      {"add_positions",
       {{2, 3, 4}},
       {{6, 4}},
       [](Context& ctx, const Tensors& v) {
         return ops::AddPositions(ctx, v[0], v[1], /*first=*/1);
       }},
  };
}

Tensor Rows(Context& ctx) {
  return MakeTensor({2, 3}, DType::kI64, {4, 0, 4, 1, 1, 4},
                    ctx.kernels().allocator());
}

std::vector<FrontCase> SharedParameterCases() {
  return {
      {"embedding_padded",
       {},
       {{5, 3}},
       [](Context& ctx, const Tensors& v) {
         return ops::Embedding(ctx, Rows(ctx), v[0], /*padding_index=*/4);
       },
       /*is_derivative=*/false},
      // A head that shares its weight with the table of tokens.
      {"embedding_and_linear_head",
       {},
       {{5, 3}},
       [](Context& ctx, const Tensors& v) {
         const Tensor x = ops::Embedding(ctx, Rows(ctx), v[0]);
         return ops::Linear(ctx, x, v[0], Tensor());
       }},
      // Two projections of different tensors by parts of one weight, whose last
      // row is not read.
      {"linear_rows",
       {{2, 3}, {4, 3}},
       {{6, 3}, {6}},
       [](Context& ctx, const Tensors& v) {
         const Tensor q = ops::LinearRows(ctx, v[0], v[2], v[3], 1, 3);
         const Tensor k = ops::LinearRows(ctx, v[1], v[2], v[3], 3, 5);
         return ops::Linear(ctx, q, k, Tensor());
       }},
      {"linear_rows_no_bias",
       {{2, 2, 3}},
       {{4, 3}},
       [](Context& ctx, const Tensors& v) {
         return ops::LinearRows(ctx, v[0], v[1], Tensor(), 0, 3);
       }},
  };
}

}  // namespace

void AddAttentionFronts(std::vector<FrontCase>& all) {
  for (const auto& cases : {AttentionCases(), MaskedCases(), MultiheadCases(),
                            PositionCases(), SharedParameterCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
}

}  // namespace troupe::nn
