// Attention with a mask beside the op without one, hidden queries, and dropout.
// tests/nn/fronts compares values and gradients with PyTorch's.

#include "nn/ops/masked_attention.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

constexpr DType kF32 = DType::kF32;

class MaskedAttentionTest : public testing::TestWithParam<bool> {
 protected:
  Tensor Normal(const char* name, const Shape& shape, DType dtype = kF32) {
    return MakeTensor(shape, dtype, NormalDraws(name, shape.numel()),
                      kernels_->allocator());
  }
  Tensor Of(const Shape& shape, const std::vector<double>& values,
            DType dtype = kF32) {
    return MakeTensor(shape, dtype, values, kernels_->allocator());
  }

  std::unique_ptr<Kernels> kernels_ =
      GetParam() ? CreateReferenceKernels() : CreateCpuKernels({});
  Tape tape_;
  Context ctx_{*kernels_, &tape_};
};

TEST_P(MaskedAttentionTest, AMaskOfOnesIsNoMask) {
  for (const DType dtype : {kF32, DType::kBF16, DType::kF16}) {
    const Tensor q = Normal("q", {2, 5, 4, 6}, dtype);
    const Tensor k = Normal("k", {2, 7, 2, 6}, dtype);
    const Tensor v = Normal("v", {2, 7, 2, 6}, dtype);
    for (const bool causal : {false, true}) {
      ops::AttentionOptions options;
      options.causal = causal;
      const Tensor plain =
          ops::ScaledDotProductAttention(ctx_, q, k, v, options);
      const Tensor undefined = ops::MaskedAttention(ctx_, q, k, v, {}, options);
      EXPECT_EQ(ValuesOf(undefined), ValuesOf(plain));
      const Tensor ones = ops::MaskedAttention(
          ctx_, q, k, v, {Of({}, {1}), Of({}, {0}, dtype)}, options);
      ASSERT_TRUE(ctx_.ok()) << ctx_.status();
      EXPECT_TRUE(
          Near(ValuesOf(ones), ValuesOf(plain), 4 * OpTolerance(dtype)));
    }
  }
}

TEST_P(MaskedAttentionTest, AQueryThatSeesNoKeyIsZeroWithoutAGradient) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const ops::AttentionMask hidden[] = {
      {Of({2, 1}, {0, 1}), Tensor()},
      {Tensor(), tape_.Watch(Of({2, 3}, {-kInf, -kInf, -kInf, 0, 0, 0}))}};
  for (const ops::AttentionMask& mask : hidden) {
    const Tensor q = tape_.Watch(Normal("q", {1, 2, 1, 2}));
    const Tensor k = tape_.Watch(Normal("k", {1, 3, 1, 2}));
    const Tensor v = tape_.Watch(Normal("v", {1, 3, 1, 2}));
    const Tensor y = ops::MaskedAttention(ctx_, q, k, v, mask);
    ASSERT_TRUE(ctx_.ok()) << ctx_.status();
    const std::vector<double> values = ValuesOf(y);
    EXPECT_EQ(values[0], 0);
    EXPECT_EQ(values[1], 0);
    EXPECT_NE(values[2], 0);

    struct NoSink : GradientSink {
      void GradientComplete(Parameter&) override {}
      void LastReaderDone(Parameter&) override {}
    } sink;
    BackwardPass backward(tape_, *kernels_, sink, BackwardPass::Mode::kWhole);
    backward.Seed(y, Of(y.shape(), {1, 1, 1, 1}));
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = backward.Next();
    ASSERT_TRUE(more.ok()) << more.status();
    const std::vector<double> dq = ValuesOf(tape_.InputGrad(q));
    EXPECT_EQ(dq[0], 0);
    EXPECT_EQ(dq[1], 0);
    EXPECT_NE(dq[2], 0);
    for (const Tensor& x : {k, v, mask.bias}) {
      if (!x.defined()) continue;
      for (const double g : ValuesOf(tape_.InputGrad(x))) {
        EXPECT_TRUE(std::isfinite(g)) << g;
      }
    }
  }
}

// The numbers of heads in the options, or in the shapes, are those of the op
// without a mask.
TEST_P(MaskedAttentionTest, HeadsAreThoseOfTheOtherOp) {
  const Tensor q = Normal("q", {2, 3, 4, 2}), k = Normal("k", {2, 5, 2, 2});
  for (const std::int64_t heads : {0, 4}) {
    for (const std::int64_t kv_heads : {-1, 0, 1, 2}) {
      ops::AttentionOptions options;
      options.heads = heads;
      options.kv_heads = kv_heads;
      Context plain(*kernels_), masked(*kernels_);
      const Tensor y = ops::ScaledDotProductAttention(plain, q, k, k, options);
      const Tensor z = ops::MaskedAttention(masked, q, k, k,
                                            {Of({}, {1}), Tensor()}, options);
      EXPECT_EQ(masked.status(), plain.status());
      if (!plain.ok()) continue;
      EXPECT_TRUE(Near(ValuesOf(z), ValuesOf(y), 4 * OpTolerance(kF32)));
    }
  }
}

TEST_P(MaskedAttentionTest, PaddingHidesKeysFromAllQueries) {
  const Tensor mask =
      ops::KeyPaddingMask(ctx_, Of({2, 3}, {0, 0, 7, 1, 0, 0}, DType::kI64));
  EXPECT_EQ(mask.shape(), (Shape{2, 1, 1, 3}));
  EXPECT_EQ(ValuesOf(mask), (std::vector<double>{1, 1, 0, 0, 1, 1}));
}

// Values are rows of the unit matrix, and scores equal: the result has the
// probabilities.
TEST_P(MaskedAttentionTest, DropsInTrainingAlone) {
  constexpr std::int64_t kKeys = 40;
  std::vector<double> unit(kKeys * kKeys, 0);
  for (std::int64_t i = 0; i < kKeys; ++i) unit[i * kKeys + i] = 1;
  const Tensor zeros =
      Of({1, kKeys, 1, kKeys}, std::vector<double>(kKeys * kKeys, 0));
  const Tensor v = Of({1, kKeys, 1, kKeys}, unit);
  std::vector<double> half(kKeys, 0);
  for (std::int64_t i = 0; i < kKeys / 2; ++i) half[i] = 1;
  ops::AttentionOptions options;
  options.dropout = 0.25;
  ctx_.set_random({/*seed=*/1});
  for (const bool training : {false, true}) {
    ctx_.set_training(training);
    const Tensor y = ops::MaskedAttention(
        ctx_, zeros, zeros, v, {Of({kKeys}, half), Tensor()}, options);
    ASSERT_TRUE(ctx_.ok()) << ctx_.status();
    const std::vector<double> p = ValuesOf(y);
    int dropped = 0;
    for (std::int64_t i = 0; i < kKeys * kKeys; ++i) {
      if (i % kKeys >= kKeys / 2) {
        EXPECT_EQ(p[i], 0) << i;
      } else if (p[i] == 0) {
        ++dropped;
      } else {
        EXPECT_NEAR(p[i], 2.0 / kKeys / (training ? 0.75 : 1), 1e-6);
      }
    }
    const double share = dropped / (kKeys * kKeys / 2.0);
    EXPECT_NEAR(share, training ? 0.25 : 0, training ? 0.08 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, MaskedAttentionTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "reference" : "cpu";
                         });

}  // namespace
}  // namespace troupe::nn
