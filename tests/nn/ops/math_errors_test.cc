// Errors of the fronts of arithmetic, shapes and products, and their messages;
// and results for empty tensors.

#include <string>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/ops/activation.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/concat.h"
#include "nn/ops/expand.h"
#include "nn/ops/extremes.h"
#include "nn/ops/flip.h"
#include "nn/ops/matmul.h"
#include "nn/ops/permute.h"
#include "nn/ops/reduce.h"
#include "nn/ops/reshape.h"
#include "nn/ops/slice.h"
#include "nn/ops/softmax.h"
#include "nn/ops/triangle.h"
#include "tests/nn/ops/op_errors_fixture.h"

namespace troupe::nn {
namespace {

class MathFrontsTest : public OpErrorsFixture {};

TEST_F(MathFrontsTest, ElementWise) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Silu(ctx, T({2}, DType::kI64));
            }),
            "silu takes floating numbers, got i64[2]");
  EXPECT_EQ(Message([&](Context& ctx) { return ops::Exp(ctx, Tensor()); }),
            "exp takes floating numbers, got undefined");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Mul(ctx, T({2, 3}), T({2}));
            }),
            "mul takes two tensors of one dtype that broadcast to one shape, "
            "got f32[2, 3] and f32[2]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Div(ctx, T({2}), T({2}, DType::kF64));
            }),
            "div takes two tensors of one dtype that broadcast to one shape, "
            "got f32[2] and f64[2]");
}

TEST_F(MathFrontsTest, Axes) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Softmax(ctx, T({2, 3}), 2);
            }),
            "softmax takes x with elements along axis 2, got f32[2, 3]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Softmax(ctx, T({2, 0}));
            }),
            "softmax takes x with elements along axis -1, got f32[2, 0]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Sum(ctx, T({2, 3}), {1, -1});
            }),
            "sum takes floating numbers and axes of theirs, each once, got "
            "f32[2, 3] and {1, -1}");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Permute(ctx, T({2, 3}), {1});
            }),
            "permute takes the axes of x, each once, got f32[2, 3] and {1}");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Transpose(ctx, T({2, 3}), 0, 2);
            }),
            "transpose takes two axes of x, got f32[2, 3], 0 and 2");
}

TEST_F(MathFrontsTest, Parts) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Reshape(ctx, T({2, 3}), {5});
            }),
            "reshape takes a shape of as many elements, got f32[2, 3] and [5]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Slice(ctx, T({2, 3}), 1, 2, 4);
            }),
            "slice takes a range of an axis of x, got f32[2, 3], axis 1 and "
            "[2, 4)");
  EXPECT_EQ(Message([&](Context& ctx) {
              const auto parts = ops::Split(ctx, T({2, 3}), 1, {1, 1});
              return parts.empty() ? Tensor() : parts[0];
            }),
            "split takes the extents of parts that make up an axis, got "
            "f32[2, 3], axis 1 and {1, 1}");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Concat(ctx, {T({2, 3}), T({3, 2})}, 0);
            }),
            "concat takes tensors of one dtype that differ along axis 0 only, "
            "got {f32[2, 3], f32[3, 2]}");
  EXPECT_NE(
      Message([&](Context& ctx) { return ops::Concat(ctx, {}, 0); }).find("{}"),
      std::string::npos);
}

TEST_F(MathFrontsTest, MatMul) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::MatMul(ctx, T({2, 3}), T({2, 3}));
            }),
            "matmul takes a[..., M, K] and b[..., K, N] of one dtype, got "
            "f32[2, 3] and f32[2, 3]");
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::MatMul(ctx, T({2, 3, 4}), T({3, 5, 4}), {false, true});
      }),
      "matmul takes a[..., M, K] and b[..., N, K] of one dtype, got "
      "f32[2, 3, 4] and f32[3, 5, 4]");
}

TEST_F(MathFrontsTest, RepetitionsAndExtremesNameWhatDoesNotFit) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Expand(ctx, T({2, 3}), {2, 4});
            }),
            "expand takes a tensor that broadcasts to the shape, got f32[2, 3] "
            "and [2, 4]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Repeat(ctx, T({2, 3}), {2});
            }),
            "repeat takes a count for each axis of x, at most 6 of them, got "
            "f32[2, 3] and {2}");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Repeat(ctx, T({2}), {std::int64_t{1} << 62});
            }),
            "repeat takes a count for each axis of x, at most 6 of them, got "
            "f32[2] and {4611686018427387904}");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Flip(ctx, T({2, 3}), {1, -1});
            }),
            "flip takes axes of x, each once, got f32[2, 3] and {1, -1}");
  EXPECT_EQ(Message([&](Context& ctx) { return ops::Roll(ctx, T({2}), 1, 1); }),
            "roll takes an axis of x, got f32[2] and 1");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Stack(ctx, {T({2}), T({3})}, 0);
            }),
            "stack takes tensors of one shape and dtype, and an axis of the "
            "result, got {f32[2], f32[3]} and 0");
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::Max(ctx, T({2, 0}), 1).values;
      }),
      "max takes floating numbers and an axis of theirs that is not empty, got "
      "f32[2, 0] and 1");
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::Amax(ctx, T({2}), {0, 0});
      }),
      "amax takes floating numbers and axes of theirs that are not empty, each "
      "once, got f32[2] and {0, 0}");
  EXPECT_EQ(Message([&](Context& ctx) { return ops::OneHot(ctx, T({2}), 3); }),
            "one_hot takes labels i64[...], a number of classes and a floating "
            "dtype, got f32[2], 3 and f32");
  EXPECT_EQ(Message([&](Context& ctx) { return ops::Tril(ctx, T({2})); }),
            "tril takes matrices x[..., R, C], got f32[2]");
  EXPECT_EQ(
      Message([&](Context& ctx) { return ops::Clamp(ctx, T({2}), 1, 0); }),
      "clamp takes low <= high, got 1 and 0");
}

// Returns the shape of the result of `op`, with kernels and without.
template <typename Op>
std::string ShapeBothWays(Kernels& kernels, Op op) {
  Context computed(kernels);
  const Shape shape = op(computed).shape();
  EXPECT_TRUE(computed.ok()) << computed.status();
  ShapeRecord record;
  Context shape_only(kernels.device(), record);
  EXPECT_EQ(op(shape_only).shape(), shape);
  EXPECT_FALSE(record.ops.empty());
  return shape.ToString();
}

TEST_F(MathFrontsTest, EmptyBatches) {
  const Tensor x = T({0, 3, 4}), b = T({4, 5});
  const auto shape = [&](auto op) { return ShapeBothWays(*kernels_, op); };
  EXPECT_EQ(shape([&](Context& c) { return ops::Gelu(c, x); }), "[0, 3, 4]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Mul(c, x, T({4})); }),
            "[0, 3, 4]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Softmax(c, x, 1); }),
            "[0, 3, 4]");
  EXPECT_EQ(shape([&](Context& c) { return ops::MatMul(c, x, b); }),
            "[0, 3, 5]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Mean(c, x, {1}); }), "[0, 4]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Max(c, x, 1).values; }),
            "[0, 4]");
  EXPECT_EQ(shape([&](Context& c) {
              return ops::Amin(c, x, {1, 2}, true);
            }),
            "[0, 1, 1]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Flip(c, x, {0}); }),
            "[0, 3, 4]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Roll(c, x, 1, 0); }),
            "[0, 3, 4]");
  EXPECT_EQ(shape([&](Context& c) {
              return ops::Repeat(c, x, {2, 1, 3});
            }),
            "[0, 3, 12]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Triu(c, x); }), "[0, 3, 4]");
  EXPECT_EQ(shape([&](Context& c) {
              return ops::Permute(c, x, {2, 0, 1});
            }),
            "[4, 0, 3]");
  EXPECT_EQ(shape([&](Context& c) {
              return ops::Concat(c, {x, x}, 1);
            }),
            "[0, 6, 4]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Slice(c, x, 2, 1, 3); }),
            "[0, 3, 2]");
  EXPECT_EQ(shape([&](Context& c) {
              return ops::Reshape(c, x, {0, 12});
            }),
            "[0, 12]");
}

TEST_F(MathFrontsTest, PartsThatLieTogetherShareMemory) {
  Context ctx(*kernels_);
  const Tensor x = T({4, 3});
  EXPECT_EQ(ops::Reshape(ctx, x, {12}).raw(), x.raw());
  EXPECT_EQ(ops::Slice(ctx, x, 0, 2, 4).data<float>(), x.data<float>() + 6);
  EXPECT_NE(ops::Slice(ctx, x, 1, 0, 2).raw(), x.raw());
}

}  // namespace
}  // namespace troupe::nn
