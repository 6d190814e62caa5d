// Errors of the op fronts, and their messages.

#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/ops/add.h"
#include "nn/ops/conv2d.h"
#include "nn/ops/dropout.h"
#include "nn/ops/embedding.h"
#include "nn/ops/flatten.h"
#include "nn/ops/linear.h"
#include "nn/ops/loss.h"
#include "nn/ops/pool2d.h"
#include "tests/nn/ops/op_errors_fixture.h"

namespace troupe::nn {
namespace {

class OpErrorsTest : public OpErrorsFixture {};

TEST_F(OpErrorsTest, Linear) {
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::Linear(ctx, T({2, 3}), T({4, 5}), Tensor());
      }),
      "linear takes x[..., K] and w[M, K] of one dtype, got f32[2, 3] and "
      "f32[4, 5]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Linear(ctx, T({2, 3}), T({4, 3}), T({5}));
            }),
            "linear takes a bias of f32[4], got f32[5]");
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::Linear(ctx, T({2, 3}), T({4, 3}), T({4}, DType::kF64));
      }),
      "linear takes a bias of f32[4], got f64[4]");
  EXPECT_NE(Message([&](Context& ctx) {
              return ops::Linear(ctx, Tensor(), T({4, 3}), Tensor());
            }).find("got undefined"),
            std::string::npos);
}

TEST_F(OpErrorsTest, AWindowMustFit) {
  const Shape x = {1, 4, 4, 1};
  for (const Window2d& window :
       {Window2d{5, 1}, Window2d{1, 5}, Window2d{7, 7, 1, 1, 1, 1},
        Window2d{5, 5, 4, 4}, Window2d{2, 2, 0, 1}, Window2d{2, 2, 1, -1},
        Window2d{2, 2, 1, 1, -1, 0}, Window2d{40, 40}}) {
    EXPECT_NE(Message([&](Context& ctx) {
                return ops::Conv2d(ctx, T(x),
                                   T({1, 1, window.kernel_h, window.kernel_w}),
                                   Tensor(), window);
              }).find("does not fit into f32[1, 4, 4, 1]"),
              std::string::npos);
    EXPECT_NE(Message([&](Context& ctx) {
                return ops::MaxPool2d(ctx, T(x), window);
              }).find("does not fit"),
              std::string::npos);
  }
}

TEST_F(OpErrorsTest, Conv2dAndPooling) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Conv2d(ctx, T({1, 8, 8, 3}), T({2, 4, 3, 3}),
                                 Tensor(), {3, 3});
            }),
            "conv2d takes x[N, H, W, C] and w[O, C, R, S] of one dtype, got "
            "f32[1, 8, 8, 3] and f32[2, 4, 3, 3]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::AvgPool2d(ctx, T({8, 8}), {2, 2});
            }),
            "avg_pool2d takes x[N, H, W, C], got f32[8, 8]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::MaxPool2d(ctx, T({1, 8, 8, 1}), {2, 2, 1, 1, 2, 0});
            }),
            "max_pool2d takes a padding of at most half the kernel, got 2x0 "
            "for 2x2");
}

TEST_F(OpErrorsTest, AddAndLosses) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Add(ctx, T({2}), T({2}, DType::kF64));
            }),
            "add takes two tensors of one dtype that broadcast to one shape, "
            "got f32[2] and f64[2]");
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::SoftmaxCrossEntropy(ctx, T({2, 3}), T({3}, DType::kI64));
      }),
      "cross entropy takes logits[..., C] and i64 targets[...], got f32[2, "
      "3] and i64[3]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::MeanSquaredError(ctx, T({2, 3}), T({3, 2}));
            }),
            "mse takes two tensors of one shape and dtype, got f32[2, 3] and "
            "f32[3, 2]");
}

TEST_F(OpErrorsTest, CombinedLosses) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::AddLosses(ctx, T({3}, DType::kF64), T({3}));
            }),
            "add_losses takes two losses, got f64[3] and f32[3]");
  EXPECT_EQ(
      Message([&](Context& ctx) { return ops::ScaleLoss(ctx, Tensor(), 2); }),
      "scale_loss takes a loss and a finite weight, got undefined and 2");
  EXPECT_NE(Message([&](Context& ctx) {
              return ops::ScaleLoss(ctx, T({3}, DType::kF64), std::nan(""));
            }).find("nan"),
            std::string::npos);
}

TEST_F(OpErrorsTest, EmbeddingAndDropout) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Embedding(ctx, T({2}), T({4, 3}));
            }),
            "embedding takes i64 indices[...] and table[V, D], got f32[2] and "
            "f32[4, 3]");
  EXPECT_EQ(
      Message([&](Context& ctx) { return ops::Dropout(ctx, T({2}), 1.5); }),
      "dropout takes x[N, ...] and a probability in [0, 1], got f32[2] and "
      "1.5");
}

TEST_F(OpErrorsTest, AKernelsErrorKeepsItsCode) {
  Tensor numbers = T({2}, DType::kI64);
  numbers.data<std::int64_t>()[1] = 3;
  Context loss(*kernels_);
  EXPECT_FALSE(ops::SoftmaxCrossEntropy(loss, T({2, 3}), numbers).defined());
  EXPECT_EQ(loss.status().code(), absl::StatusCode::kOutOfRange);
  Context lookup(*kernels_);
  EXPECT_FALSE(ops::Embedding(lookup, numbers, T({3, 2})).defined());
  EXPECT_EQ(lookup.status(),
            absl::OutOfRangeError(
                "Embedding: index 1 is 3, but the table has 3 rows"));
}

}  // namespace
}  // namespace troupe::nn
