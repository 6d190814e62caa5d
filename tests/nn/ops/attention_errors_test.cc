// Errors of the fronts of attention and of positions, and their messages.

#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/ops/attention.h"
#include "nn/ops/linear.h"
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

}  // namespace
}  // namespace troupe::nn
