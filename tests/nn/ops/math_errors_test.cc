// Errors of the fronts of arithmetic, shapes and products, and their messages;
// and results for empty tensors.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/ops/activation.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/compare.h"
#include "nn/ops/concat.h"
#include "nn/ops/cumsum.h"
#include "nn/ops/einsum.h"
#include "nn/ops/expand.h"
#include "nn/ops/extremes.h"
#include "nn/ops/flip.h"
#include "nn/ops/gather.h"
#include "nn/ops/matmul.h"
#include "nn/ops/pad.h"
#include "nn/ops/permute.h"
#include "nn/ops/reduce.h"
#include "nn/ops/reshape.h"
#include "nn/ops/slice.h"
#include "nn/ops/softmax.h"
#include "nn/ops/sort.h"
#include "nn/ops/triangle.h"
#include "nn/ops/where.h"
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

TEST_F(MathFrontsTest, OrdersAndMasksNameWhatDoesNotFit) {
  EXPECT_EQ(
      Message([&](Context& ctx) { return ops::Sort(ctx, T({2}), 1).values; }),
      "sort takes floating numbers and an axis of theirs, got f32[2] and 1");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Argsort(ctx, T({2}, DType::kI64));
            }),
            "argsort takes floating numbers and an axis of theirs, got i64[2] "
            "and -1");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::TopK(ctx, T({2, 3}), 4).values;
            }),
            "topk takes k from 0 to the elements of the axis, got 4, f32[2, 3] "
            "and axis -1");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Less(ctx, T({2}), T({2}, DType::kI64));
            }),
            "less takes two tensors of one dtype, floating or i64, that "
            "broadcast to one shape, got f32[2] and i64[2]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::GreaterEqual(ctx, T({2}), T({3}));
            }),
            "greater_equal takes two tensors of one dtype, floating or i64, "
            "that broadcast to one shape, got f32[2] and f32[3]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Greater(ctx, T({2}, DType::kI64), 0.5);
            }),
            "greater takes an integer beside i64[2], got 0.5");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Where(ctx, T({2}, DType::kI64), T({2}), T({2}));
            }),
            "where takes a condition of floating numbers and two tensors of "
            "one dtype, all of which broadcast to one shape, got i64[2], "
            "f32[2] and f32[2]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::MaskedFill(ctx, T({2}), T({3, 2}), 1);
            }),
            "masked_fill takes a mask of floating numbers that broadcasts to "
            "x, got f32[2] and f32[3, 2]");
}

// Results that no shape can have are errors, however small the arguments.
TEST_F(MathFrontsTest, HugeResultsNameWhatDoesNotFit) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 60;
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::OneHot(ctx, T({2}, DType::kI64), kHuge / 2);
            }),
            "one_hot takes labels i64[...], a number of classes and a floating "
            "dtype, got i64[2], 576460752303423488 and f32");
  EXPECT_EQ(
      Message([&](Context& ctx) {
        const std::vector<Tensor> axes(6, T({1100}));
        return ops::Meshgrid(ctx, axes).empty() ? Tensor() : axes[0];
      }),
      "meshgrid takes 1 to 6 vectors whose grid has less than 2^60 points, "
      "got {f32[1100], f32[1100], f32[1100], f32[1100], "
      "f32[1100], f32[1100]}");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Pad2d(ctx, T({1, 1, 2, 1}), {kHuge, 0, 0, 0});
            }),
            "pad2d by zeros, 1152921504606846976 + 0 rows and 0 + 0 columns, "
            "does not go around f32[1, 1, 2, 1]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Pad1d(ctx, T({1, 1, 2}), {kHuge / 2, 0});
            }),
            "pad1d by zeros, 576460752303423488 + 0, does not go around "
            "f32[1, 1, 2]");
  ShapeRecord record;
  Context ctx(kernels_->device(), record);
  const Tensor column = ctx.Empty("column", {kHuge / 4, 1}, DType::kF32);
  const Tensor row = ctx.Empty("row", {1, 4}, DType::kF32);
  Context other(kernels_->device(), record);
  EXPECT_FALSE(ops::Mul(other, column, row).defined());
  EXPECT_EQ(other.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ops::MatMul(ctx, column, row, {}).defined());
  EXPECT_EQ(std::string(ctx.status().message()),
            "matmul takes a[..., M, K] and b[..., K, N] of one dtype, got "
            "f32[288230376151711744, 1] and f32[1, 4]");
}

TEST_F(MathFrontsTest, IndicesNameWhatDoesNotFit) {
  const Tensor index = T({3}, DType::kI64);
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Gather(ctx, T({2, 3}), 0, index);
            }),
            "gather takes x, an axis of it and indices i64 of its rank, with "
            "at most its elements along other axes, got f32[2, 3], 0 and "
            "i64[3]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::IndexSelect(ctx, T({2, 3}), 2, index);
            }),
            "index_select takes x, an axis of it and indices i64[J], got "
            "f32[2, 3], 2 and i64[3]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::ScatterAdd(ctx, T({2}), 0, index, T({4}));
            }),
            "scatter_add takes floating numbers x, an axis, and indices i64 "
            "and a source of its dtype of one shape that differs from that of "
            "x along the axis only, got f32[2], 0, i64[3] and f32[4]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::IndexAdd(ctx, T({2, 5}), 0, index, T({3, 4}));
            }),
            "index_add takes floating numbers x, an axis, indices i64[J] and a "
            "source of its dtype with its shape but J elements along the axis, "
            "got f32[2, 5], 0, i64[3] and f32[3, 4]");
  EXPECT_EQ(
      Message([&](Context& ctx) { return ops::Cumsum(ctx, T({2}), 1); }),
      "cumsum takes floating numbers and an axis of theirs, got f32[2] and 1");
  EXPECT_EQ(
      Message([&](Context& ctx) {
        const auto grids = ops::Meshgrid(ctx, {T({2}), T({2, 3})});
        return grids.empty() ? Tensor() : grids[0];
      }),
      "meshgrid takes 1 to 6 vectors whose grid has less than 2^60 points, "
      "got {f32[2], f32[2, 3]}");
  Context ctx(*kernels_);
  Tensor wrong = T({2}, DType::kI64);
  wrong.data<std::int64_t>()[1] = 2;
  EXPECT_FALSE(ops::IndexSelect(ctx, T({2, 3}), 0, wrong).defined());
  EXPECT_EQ(ctx.status(),
            absl::OutOfRangeError("index 1 is 2, but the axis has 2 elements"));
}

TEST_F(MathFrontsTest, EinsumNamesTheSubscript) {
  const auto error = [&](const char* equation, std::vector<Tensor> operands) {
    return Message(
        [&](Context& ctx) { return ops::Einsum(ctx, equation, operands); });
  };
  EXPECT_EQ(error("ik,kj->ij", {T({2, 3}), T({4, 5})}),
            "einsum \"ik,kj->ij\": subscript k is 3 and 4, got {f32[2, 3], "
            "f32[4, 5]}");
  EXPECT_EQ(error("ii->i", {T({2, 2})}),
            "einsum \"ii->i\": subscript i is twice in ii, got {f32[2, 2]}");
  EXPECT_EQ(error("ij->ijj", {T({2, 3})}),
            "einsum \"ij->ijj\": subscript j is twice in ijj, got {f32[2, 3]}");
  EXPECT_EQ(error("ij->k", {T({2, 3})}),
            "einsum \"ij->k\": subscript k of the result is in no operand, got "
            "{f32[2, 3]}");
  EXPECT_EQ(error("ijk->i", {T({2, 3})}),
            "einsum \"ijk->i\": \"ijk\" names 3 axes of f32[2, 3], got {f32[2, "
            "3]}");
  EXPECT_EQ(error("...i->i", {T({2, 3})}),
            "einsum \"...i->i\": '.' is no letter, got {f32[2, 3]}");
  EXPECT_EQ(error("ij", {T({2, 3})}),
            "einsum \"ij\": it has no result: write \"ij,jk->ik\", got {f32[2, "
            "3]}");
  EXPECT_EQ(error("i,i,i->i", {T({2}), T({2}), T({2})}),
            "einsum \"i,i,i->i\": it has 3 operands; one or two are supported, "
            "got {f32[2], f32[2], f32[2]}");
  EXPECT_EQ(error("i,i->i", {T({2})}),
            "einsum \"i,i->i\": it names 2 operands and gets 1, got {f32[2]}");
  EXPECT_EQ(error("i,i->i", {T({2}), T({2}, DType::kF64)}),
            "einsum \"i,i->i\": operands are floating numbers of one dtype, "
            "got {f32[2], f64[2]}");
  EXPECT_EQ(error("abcd,efgh->abcdefgh", {T({1, 1, 1, 1}), T({1, 1, 1, 1})}),
            "einsum \"abcd,efgh->abcdefgh\": the result has more than 6 axes, "
            "got {f32[1, 1, 1, 1], f32[1, 1, 1, 1]}");
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
  EXPECT_EQ(shape([&](Context& c) { return ops::Sort(c, x, 1).values; }),
            "[0, 3, 4]");
  EXPECT_EQ(shape([&](Context& c) { return ops::TopK(c, x, 0).indices; }),
            "[0, 3, 0]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Less(c, x, T({4})); }),
            "[0, 3, 4]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Where(c, x, x, 0); }),
            "[0, 3, 4]");
  EXPECT_EQ(shape([&](Context& c) {
              return ops::IndexSelect(c, x, 1, T({7}, DType::kI64));
            }),
            "[0, 7, 4]");
  EXPECT_EQ(shape([&](Context& c) {
              return ops::Gather(c, x, 2, T({0, 2, 5}, DType::kI64));
            }),
            "[0, 2, 5]");
  EXPECT_EQ(shape([&](Context& c) { return ops::Cumsum(c, x, 0); }),
            "[0, 3, 4]");
  EXPECT_EQ(shape([&](Context& c) {
              return ops::Einsum(c, "bij,jk->kbi", {x, b});
            }),
            "[5, 0, 3]");
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
