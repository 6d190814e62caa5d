// Errors of the fronts of norms, and their messages.

#include <string>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/ops/batch_norm.h"
#include "nn/ops/norm.h"
#include "tests/nn/ops/op_errors_fixture.h"

namespace troupe::nn {
namespace {

class NormErrorsTest : public OpErrorsFixture {
 protected:
  std::string OfBatchNorm(const Tensor& x, const Tensor& w, const Tensor& b,
                          const ops::RunningStats& running = {},
                          const Tensor& residual = Tensor()) {
    return Message([&](Context& ctx) {
      return ops::BatchNorm(ctx, x, w, b, running, {}, residual);
    });
  }
};

TEST_F(NormErrorsTest, LayerNorm) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::LayerNorm(ctx, T({2, 3}), {4}, Tensor(), Tensor());
            }),
            "layer_norm over [4] takes x[..., those axes] and eps >= 0, got "
            "f32[2, 3] and 1e-05");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::LayerNorm(ctx, T({2, 3}), {3}, T({3}), T({2}));
            }),
            "layer_norm of f32[2, 3] takes a weight and a bias of f32[3], got "
            "f32[3] and f32[2]");
  EXPECT_NE(Message([&](Context& ctx) {
              return ops::LayerNorm(ctx, Tensor(), {3}, Tensor(), Tensor());
            }).find("got undefined"),
            std::string::npos);
}

TEST_F(NormErrorsTest, RmsNorm) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::RmsNorm(ctx, T({2, 3}), T({3}, DType::kF64), 0.5);
            }),
            "rms_norm takes x[..., D], w[D] of one dtype and eps >= 0, got "
            "f32[2, 3], f64[3] and 0.5");
  EXPECT_NE(Message([&](Context& ctx) {
              return ops::RmsNorm(ctx, T({3}), Tensor(), -1);
            }).find("and -1"),
            std::string::npos);
}

TEST_F(NormErrorsTest, AfterAnAddition) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::AddLayerNorm(ctx, T({2, 3}), T({2, 3}), {4}, Tensor(),
                                       Tensor())
                  .normed;
            }),
            "layer_norm over [4] takes x[..., those axes] and eps >= 0, got "
            "f32[2, 3] and 1e-05");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::AddRmsNorm(ctx, T({2, 3}), T({2, 4}), T({3})).sum;
            }),
            "add takes two tensors of one dtype that broadcast to one shape, "
            "got f32[2, 3] and f32[2, 4]");
}

TEST_F(NormErrorsTest, GroupNorm) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::GroupNorm(ctx, T({2, 6}), 4, Tensor(), Tensor());
            }),
            "group_norm takes x[N, ..., C], groups that divide C and eps >= 0, "
            "got f32[2, 6], 4 and 1e-05");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::GroupNorm(ctx, T({2, 6}), 3, T({3}), Tensor());
            }),
            "group_norm of f32[2, 6] takes a weight and a bias of f32[6], got "
            "f32[3] and undefined");
}

TEST_F(NormErrorsTest, BatchNorm) {
  EXPECT_EQ(OfBatchNorm(T({3}), Tensor(), Tensor()),
            "batch_norm takes x[N, ..., C], got f32[3]");
  EXPECT_EQ(OfBatchNorm(T({2, 3}), T({4}), T({4})),
            "batch_norm of f32[2, 3] takes a weight and a bias of f32[3], or "
            "neither, got f32[4] and f32[4]");
  EXPECT_EQ(OfBatchNorm(T({2, 3}), T({3}), Tensor()),
            "batch_norm of f32[2, 3] takes a weight and a bias of f32[3], or "
            "neither, got f32[3] and undefined");
  EXPECT_EQ(OfBatchNorm(T({2, 3}), Tensor(), Tensor(),
                        {T({3}), T({2}), T({}, DType::kI64)}),
            "batch_norm of f32[2, 3] takes running statistics of [3] and an "
            "i64 counter, got f32[3], f32[2] and i64[]");
  EXPECT_EQ(OfBatchNorm(T({2, 3}), Tensor(), Tensor(), {}, T({3, 2})),
            "batch_norm takes x and a residual of one shape and dtype, got "
            "f32[2, 3] and f32[3, 2]");
  EXPECT_EQ(OfBatchNorm(T({1, 1, 1, 3}), Tensor(), Tensor()),
            "Expected more than 1 value per channel when training, got input "
            "size f32[1, 1, 1, 3]; make micro-batches larger");
}

TEST_F(NormErrorsTest, BatchNormOptions) {
  ops::BatchNormOptions options;
  options.momentum = 1.5;
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::BatchNorm(ctx, T({2, 3}), Tensor(), Tensor(), {}, options);
      }),
      "batch_norm takes eps >= 0 and a momentum in [0, 1], got 1e-05 and "
      "1.5");
}

}  // namespace
}  // namespace troupe::nn
