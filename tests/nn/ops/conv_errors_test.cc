// Errors of the fronts of convolutions, borders and pooling, and their
// messages.

#include <string>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/ops/conv1d.h"
#include "nn/ops/conv2d.h"
#include "nn/ops/conv_transpose2d.h"
#include "nn/ops/pad.h"
#include "nn/ops/pool2d.h"
#include "tests/nn/ops/op_errors_fixture.h"

namespace troupe::nn {
namespace {

class ConvErrorsTest : public OpErrorsFixture {};

TEST_F(ConvErrorsTest, GroupsDivideTheChannels) {
  const auto message = [&](std::int64_t groups, const Shape& w) {
    ConvOptions options;
    options.groups = groups;
    return Message([&](Context& ctx) {
      return ops::Conv2d(ctx, T({1, 8, 8, 6}), T(w), Tensor(), {3, 3}, options);
    });
  };
  EXPECT_EQ(message(2, {4, 6, 3, 3}),
            "conv2d in 2 groups takes x[N, H, W, C] and w[O, C / 2, R, S] of "
            "one dtype, got f32[1, 8, 8, 6] and f32[4, 6, 3, 3]");
  for (std::int64_t groups : {0, -3, 4, 5}) {
    EXPECT_NE(message(groups, {4, 1, 3, 3}).find(" groups takes"),
              std::string::npos);
  }
  EXPECT_NE(message(3, {4, 2, 3, 3}).find("in 3 groups"), std::string::npos);
}

TEST_F(ConvErrorsTest, DilatedWindowsMustFit) {
  const auto message = [&](const Window2d& window) {
    return Message([&](Context& ctx) {
      return ops::Conv2d(ctx, T({1, 5, 5, 1}), T({1, 1, 3, 3}), Tensor(),
                         window);
    });
  };
  for (const Window2d& window :
       {Window2d{3, 3, 1, 1, 0, 0, 3, 1}, Window2d{3, 3, 1, 1, 0, 0, 1, 3},
        Window2d{3, 3, 1, 1, 0, 0, 0, 1}, Window2d{3, 3, 1, 1, 0, 0, 1, -1}}) {
    EXPECT_NE(message(window).find("does not fit into f32[1, 5, 5, 1]"),
              std::string::npos);
  }
}

TEST_F(ConvErrorsTest, SamePaddingHasStrideOne) {
  ConvOptions same;
  same.same = true;
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Conv2d(ctx, T({1, 5, 5, 1}), T({1, 1, 3, 3}),
                                 Tensor(), {3, 3, 1, 2}, same);
            }),
            "conv2d with same padding takes a stride of 1, got 1x2");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Conv1d(ctx, T({1, 5, 1}), T({1, 1, 3}), Tensor(),
                                 {3, 2}, same);
            }),
            "conv1d with same padding takes a stride of 1, got 2");
}

TEST_F(ConvErrorsTest, Conv1d) {
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::Conv1d(ctx, T({1, 5, 2}), T({1, 1, 3}), Tensor(), {3});
      }),
      "conv1d in 1 groups takes x[N, L, C] and w[O, C / groups, K] of "
      "one dtype, got f32[1, 5, 2] and f32[1, 1, 3]");
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::Conv1d(ctx, T({1, 5, 2}), T({1, 2, 6}), Tensor(), {6});
      }),
      "conv1d of 6 does not fit into f32[1, 5, 2]");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Conv1d(ctx, T({1, 5, 2}), T({1, 2, 3}), T({2}), {3});
            }),
            "conv1d takes a bias of f32[1], got f32[2]");
}

TEST_F(ConvErrorsTest, ConvTranspose2d) {
  const auto message = [&](const Shape& w, const Shape& b,
                           const Window2d& window,
                           const ConvTransposeOptions& options) {
    return Message([&](Context& ctx) {
      return ops::ConvTranspose2d(ctx, T({1, 3, 3, 4}), T(w), T(b), window,
                                  options);
    });
  };
  EXPECT_EQ(message({4, 2, 3, 3}, {2}, {3, 2}, {}),
            "conv_transpose2d of 3x2 takes x[N, H, W, C] and w[C, O / groups, "
            "R, S], got f32[1, 3, 3, 4] and f32[4, 2, 3, 3]");
  EXPECT_EQ(message({2, 4, 3, 3}, {4}, {3, 3}, {}),
            "conv_transpose2d in 1 groups takes x[N, H, W, C] and w[C, O / "
            "groups, R, S] of one dtype, got f32[1, 3, 3, 4] and f32[2, 4, 3, "
            "3]");
  EXPECT_EQ(message({4, 2, 3, 3}, {2}, {3, 3}, {2}),
            "conv_transpose2d takes a bias of f32[4], got f32[2]");
  for (const ConvTransposeOptions& options :
       {ConvTransposeOptions{1, 1, 0}, ConvTransposeOptions{1, 0, -1}}) {
    EXPECT_NE(message({4, 2, 3, 3}, {2}, {3, 3}, options)
                  .find("output_padding that is not below its stride"),
              std::string::npos);
  }
  EXPECT_NE(message({4, 2, 1, 1}, {2}, {1, 1, 1, 1, 2, 0}, {})
                .find("has no result for f32[1, 3, 3, 4]"),
            std::string::npos);
}

TEST_F(ConvErrorsTest, Borders) {
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::Pad2d(ctx, T({2, 3}), {1, 1, 1, 1});
            }),
            "pad2d takes x[N, H, W, C], got f32[2, 3]");
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::Pad2d(ctx, T({1, 3, 4, 2}),
                          {3, 1, 1, 1, PadMode::kReflect});
      }),
      "pad2d by reflect, 3 + 1 rows and 1 + 1 columns, does not go around "
      "f32[1, 3, 4, 2]");
  EXPECT_NE(Message([&](Context& ctx) {
              return ops::Pad2d(ctx, T({1, 3, 4, 2}),
                                {1, 1, 1, 5, PadMode::kCircular});
            }).find("pad2d by circular"),
            std::string::npos);
  EXPECT_NE(Message([&](Context& ctx) {
              return ops::Pad1d(ctx, T({1, 0, 2}), {1, 0, PadMode::kReplicate});
            }).find("pad1d by replicate, 1 + 0, does not go around"),
            std::string::npos);
  EXPECT_NE(Message([&](Context& ctx) {
              return ops::Pad1d(ctx, T({1, 3, 2}), {-1, 0});
            }).find("pad1d by zeros"),
            std::string::npos);
}

TEST_F(ConvErrorsTest, Pooling) {
  EXPECT_EQ(
      Message([&](Context& ctx) {
        return ops::MaxPool2d(ctx, T({1, 8, 8, 1}), {2, 2, 1, 1, 0, 0, 2, 1});
      }),
      "max_pool2d takes a window without dilation, got 2x1");
  EXPECT_EQ(Message([&](Context& ctx) {
              return ops::AdaptiveAvgPool2d(ctx, T({1, 8, 8, 1}), 2, 0);
            }),
            "adaptive_avg_pool2d takes x[N, H, W, C] and at least one output, "
            "got f32[1, 8, 8, 1] and 2x0");
}

// Shape-only forwards, and batches without samples.
TEST_F(ConvErrorsTest, EmptyBatchesHaveShapes) {
  Context ctx(*kernels_);
  ConvOptions circular;
  circular.groups = 2;
  circular.padding_mode = PadMode::kCircular;
  const Tensor y = ops::Conv2d(ctx, T({0, 5, 5, 4}), T({6, 2, 3, 3}), T({6}),
                               {3, 3, 1, 1, 1, 1}, circular);
  const Tensor z = ops::ConvTranspose2d(ctx, y, T({6, 2, 3, 3}), T({2}),
                                        {3, 3, 2, 2}, {1, 1, 1});
  const Tensor mean = ops::AdaptiveAvgPool2d(ctx, z, 3, 2);
  ASSERT_TRUE(ctx.ok()) << ctx.status();
  EXPECT_EQ(y.shape(), (Shape{0, 5, 5, 6}));
  EXPECT_EQ(z.shape(), (Shape{0, 12, 12, 2}));
  EXPECT_EQ(mean.shape(), (Shape{0, 3, 2, 2}));
}

}  // namespace
}  // namespace troupe::nn
