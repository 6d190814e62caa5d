// Errors of the fronts of attention and of positions, and their messages.

#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/ops/attention.h"
#include "nn/ops/linear.h"
#include "nn/ops/masked_attention.h"
#include "nn/ops/rotary.h"
#include "tests/nn/ops/op_errors_fixture.h"

namespace troupe::nn {
namespace {

class AttentionErrorsTest : public OpErrorsFixture {};

TEST_F(AttentionErrorsTest, OperandsMustFitTogether) {
  const auto apart = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return Message([&](Context& ctx) {
      return ops::ScaledDotProductAttention(ctx, q, k, v);
    });
  };
  EXPECT_EQ(apart(T({2, 3, 4, 5}), T({2, 3, 3, 5}), T({2, 3, 3, 5})),
            "attention takes q[N, T, Hq, D], k[N, S, Hkv, D] and "
            "v[N, S, Hkv, D] of one dtype, Hkv a divisor of Hq, got "
            "f32[2, 3, 4, 5], f32[2, 3, 3, 5] and f32[2, 3, 3, 5] with 4 and "
            "3 heads");
  const Tensor q = T({2, 3, 2, 4});
  for (const Shape& k : {Shape{1, 3, 2, 4}, Shape{2, 5, 2, 4},
                         Shape{2, 3, 2, 3}, Shape{2, 3, 8}}) {
    EXPECT_NE(apart(q, T(k), q).find("got f32[2, 3, 2, 4], "),
              std::string::npos);
  }
  apart(q, T({2, 3, 2, 4}, DType::kF64), q);
  EXPECT_EQ(apart(q, Tensor(), q),
            "attention takes q, k and v, got f32[2, 3, 2, 4], undefined and "
            "f32[2, 3, 2, 4]");
  EXPECT_EQ(apart(q, T({2, 0, 2, 4}), T({2, 0, 2, 4})),
            "attention takes at least one key, got f32[2, 0, 2, 4]");
}

TEST_F(AttentionErrorsTest, PackedOperandsNeedTheirHeads) {
  ops::AttentionOptions options;
  const auto packed = [&](const Tensor& qkv) {
    return Message(
        [&](Context& ctx) { return ops::PackedAttention(ctx, qkv, options); });
  };
  EXPECT_EQ(packed(T({2, 3, 12})),
            "attention takes qkv[N, T, (Hq + 2 Hkv) D] of one dtype, Hkv a "
            "divisor of Hq, got f32[2, 3, 12] with 0 and 0 heads");
  options.heads = 4;
  packed(T({2, 3, 16}));
  packed(T({3, 12}));
  EXPECT_NE(packed(Tensor()).find("got undefined"), std::string::npos);
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::PackedAttention(ctx, T({1, 2, 8}), Tensor(), options);
            }),
            "attention takes q and kv, got f32[1, 2, 8] and undefined");
}

TEST_F(AttentionErrorsTest, DropoutIsAProbabilityWithADrawForEachKey) {
  ops::AttentionOptions options;
  options.heads = 1;
  const auto packed = [&](Context& ctx) {
    return ops::PackedAttention(ctx, T({1, 2, 3}), options);
  };
  options.dropout = 1.5;
  EXPECT_EQ(Message(packed), "attention takes a dropout in [0, 1], got 1.5");
  options.dropout = NAN;
  EXPECT_EQ(Message(packed), "attention takes a dropout in [0, 1], got nan");
  options.dropout = 0.5;
  ShapeRecord record;
  Context ctx(Device{}, record);
  constexpr std::int64_t kPositions = 200'000;
  ops::PackedAttention(
      ctx, Tensor::Meta({1, kPositions, 3}, DType::kF32, Device{}), options);
  EXPECT_EQ(ctx.status().message(),
            "attention with dropout has at most 2^34 probabilities in a "
            "sample, got 1 heads of 200000 queries and 200000 keys");
}

TEST_F(AttentionErrorsTest, AMaskBroadcastsToTheScores) {
  const auto masked = [&](const Tensor& k, const ops::AttentionMask& mask) {
    return Message([&](Context& ctx) {
      return ops::MaskedAttention(ctx, T({2, 3, 4, 5}), k, k, mask);
    });
  };
  const Tensor k = T({2, 6, 2, 5});
  EXPECT_EQ(masked(k, {T({2, 6}), Tensor()}),
            "attention takes a mask of floating numbers that broadcasts to "
            "[N, Hq, T, S], [2, 4, 3, 6], got f32[2, 6]; reshape it, or "
            "compare it with 0");
  EXPECT_NE(masked(k, {T({3, 6}, DType::kI64), Tensor()}).find("got i64[3, 6]"),
            std::string::npos);
  EXPECT_EQ(masked(k, {Tensor(), T({1, 2, 4, 3, 6})}),
            "attention takes a bias of the dtype of q, f32, that broadcasts to "
            "[N, Hq, T, S], [2, 4, 3, 6], got f32[1, 2, 4, 3, 6]; cast or "
            "reshape it");
  EXPECT_NE(masked(k, {T({3, 6}), T({3, 6}, DType::kF64)}).find("got f64["),
            std::string::npos);
  // Operands that do not fit together, with the words of the other op.
  const ops::AttentionMask any{T({3, 6}), Tensor()};
  EXPECT_NE(masked(T({2, 6, 3, 5}), any).find("with 4 and 3 heads"),
            std::string::npos);
  EXPECT_EQ(masked(T({2, 0, 4, 5}), any),
            "attention takes at least one key, got f32[2, 0, 4, 5]");
  EXPECT_EQ(
      Message([&](Context& ctx) { return ops::KeyPaddingMask(ctx, T({6})); }),
      "key_padding_mask takes padding[N, S], got f32[6]; give it a row "
      "for each sample");
}

TEST_F(AttentionErrorsTest, RotaryTurnsPairs) {
  ops::RotaryOptions options;
  const auto rotary = [&](const Tensor& x) {
    return Message([&](Context& ctx) { return ops::Rotary(ctx, x, options); });
  };
  EXPECT_EQ(rotary(T({2, 3, 8})),
            "rotary takes x[N, T, H, D], or x[N, T, H D] and the width of a "
            "head, got f32[2, 3, 8] and 0");
  EXPECT_EQ(rotary(T({2, 3, 2, 5})),
            "rotary turns an even number of a head's elements by positions "
            "from 0 on, got 5 elements of 2 heads from position 0 with base "
            "10000 for f32[2, 3, 2, 5]");
  options.heads = 3;
  rotary(T({2, 3, 2, 4}));
}

TEST_F(AttentionErrorsTest, PartsOfAWeightLieInside) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::LinearRows(ctx, T({2, 3}), T({4, 3}), Tensor(), 2, 5);
            }),
            "linear has no outputs [2, 5) for f32[4, 3]");
}

TEST_F(AttentionErrorsTest, AShapeOnlyForwardCountsWhatIsSeen) {
  ShapeRecord record;
  Context ctx(Device{}, record);
  ops::AttentionOptions options;
  options.heads = 2;
  options.causal = true;
  const Tensor y = ops::PackedAttention(
      ctx, Tensor::Meta({3, 4, 2 * 3 * 5}, DType::kF32, Device{}), options);
  ASSERT_TRUE(ctx.ok()) << ctx.status();
  EXPECT_EQ(y.shape(), (Shape{3, 4, 10}));
  EXPECT_EQ(record.flops(), 4.0 * 3 * 2 * 5 * (1 + 2 + 3 + 4));
}

TEST_F(AttentionErrorsTest, AShapeOnlyForwardTakesAMask) {
  ShapeRecord record;
  Context ctx(Device{}, record);
  const auto meta = [](const Shape& shape) {
    return Tensor::Meta(shape, DType::kF32, Device{});
  };
  ops::AttentionOptions options;
  options.causal = true;
  const Tensor y = ops::MaskedAttention(
      ctx, meta({2, 3, 4, 5}), meta({2, 6, 2, 5}), meta({2, 6, 2, 5}),
      {ops::KeyPaddingMask(ctx, meta({2, 6})), meta({4, 3, 6})}, options);
  ASSERT_TRUE(ctx.ok()) << ctx.status();
  EXPECT_EQ(y.shape(), (Shape{2, 3, 4, 5}));
  EXPECT_GT(record.flops(), 4.0 * 2 * 4 * 5 * 3 * 6);
}

}  // namespace
}  // namespace troupe::nn
