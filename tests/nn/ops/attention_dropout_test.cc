// Dropout of attention probabilities: which of them are dropped, that draws
// depend on the sample and the module, and that backward drops the same.

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/attention.h"
#include "nn/modules/module.h"
#include "nn/ops/attention.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

constexpr std::int64_t kHeads = 2, kQueries = 24, kKeys = 20;

DropoutMask MaskOf(double p) {
  DropoutMask mask{{RandomKey(/*seed=*/3, Purpose::kDropout), {4, 5, 6}}};
  mask.drop_below = static_cast<std::uint32_t>(p * 0x1p32);
  mask.scale = 1 / (1 - p);
  return mask;
}

std::vector<std::unique_ptr<Kernels>> AllSets() {
  std::vector<std::unique_ptr<Kernels>> sets;
  sets.push_back(CreateReferenceKernels());
  sets.push_back(CreateCpuKernels({}));
  return sets;
}

// Equal scores, and values that are rows of the unit matrix: element s of a
// query's result is the probability of key s.
struct Uniform {
  Uniform(std::int64_t samples, Allocator& memory)
      : q(Tensor::Zeros({samples, kQueries, kHeads, kKeys}, DType::kF32,
                        memory)),
        k(Tensor::Zeros({samples, kKeys, kHeads, kKeys}, DType::kF32, memory)),
        v(Tensor::Zeros(k.shape(), DType::kF32, memory)) {
    for (std::int64_t i = 0; i < samples * kKeys * kHeads; ++i) {
      v.data<float>()[i * kKeys + i / kHeads % kKeys] = 1;
    }
  }
  Tensor q, k, v;
};

class AttentionDropoutTest : public testing::Test {
 protected:
  // Returns the results of samples [at.sample, ... + samples) of a global batch
  // of Uniform.
  std::vector<double> Run(const StepPosition& at, std::int64_t samples,
                          double p = 0.25, bool training = true) {
    Context ctx(*kernels_);
    ctx.set_random(at);
    ctx.set_training(training);
    ops::AttentionOptions options;
    options.dropout = p;
    const Uniform in(samples, kernels_->allocator());
    const Tensor y =
        ops::ScaledDotProductAttention(ctx, in.q, in.k, in.v, options);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return ValuesOf(y);
  }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
};

// The draws are the same as those of a Dropout of probabilities [N, H, T, S].
TEST_F(AttentionDropoutTest, DropsWhatDropoutOfTheProbabilitiesDrops) {
  for (const auto& kernels : AllSets()) {
    Allocator& memory = kernels->allocator();
    constexpr std::int64_t kSamples = 3;
    Tensor factors =
        Tensor::Empty({kSamples, kHeads, kQueries, kKeys}, DType::kF32, memory);
    ASSERT_TRUE(kernels->Fill(1.0, factors).ok());
    ASSERT_TRUE(kernels->Dropout(MaskOf(0.25), factors, factors).ok());
    AttentionRule rule;
    rule.dropout = MaskOf(0.25);
    const Uniform in(kSamples, memory);
    Tensor y = Tensor::Empty(in.q.shape(), DType::kF32, memory);
    Tensor lse =
        Tensor::Empty({kSamples, kHeads, kQueries}, DType::kF32, memory);
    ASSERT_TRUE(kernels->AttentionForward(rule, in.q, in.k, in.v, y, lse).ok());
    std::vector<double> got;
    for (std::int64_t n = 0; n < kSamples; ++n) {
      for (std::int64_t h = 0; h < kHeads; ++h) {
        for (std::int64_t t = 0; t < kQueries; ++t) {
          const float* row =
              y.data<float>() + ((n * kQueries + t) * kHeads + h) * kKeys;
          for (std::int64_t s = 0; s < kKeys; ++s) {
            got.push_back(row[s] * kKeys);
          }
        }
      }
    }
    EXPECT_TRUE(Near(got, ValuesOf(factors), 1e-6)) << kernels->Describe();
    for (double value : ValuesOf(lse)) {
      EXPECT_NEAR(value, std::log(kKeys), 1e-6) << "dropout leaves the softmax";
    }
  }
}

TEST_F(AttentionDropoutTest, DropsAsOftenAsAskedAndKeepsTheMean) {
  for (const double p : {0.1, 0.5}) {
    const std::vector<double> y = Run({1, 2, 0}, 40, p);
    double kept = 0, sum = 0;
    for (double value : y) {
      kept += value != 0;
      sum += value * kKeys;
    }
    const double n = static_cast<double>(y.size());
    EXPECT_NEAR(kept / n, 1 - p, 0.01);
    EXPECT_NEAR(sum / n, 1, 0.02);
  }
}

TEST_F(AttentionDropoutTest, AnyCutOfTheGlobalBatchDropsTheSame) {
  const std::vector<double> whole = Run({1, 2, 0}, 8);
  for (std::int64_t micro : {1, 2, 4}) {
    std::vector<double> parts;
    for (std::int64_t begin = 0; begin < 8; begin += micro) {
      for (double y : Run({1, 2, begin}, micro)) parts.push_back(y);
    }
    EXPECT_EQ(parts, whole) << "micro-batches of " << micro;
  }
}

TEST_F(AttentionDropoutTest, SeedStepAndSampleEachChangeTheMask) {
  const std::vector<double> first = Run({1, 2, 3}, 1);
  EXPECT_EQ(Run({1, 2, 3}, 1), first);
  EXPECT_NE(Run({2, 2, 3}, 1), first);
  EXPECT_NE(Run({1, 3, 3}, 1), first);
  EXPECT_NE(Run({1, 2, 4}, 1), first);
}

TEST_F(AttentionDropoutTest, EvaluationAndZeroChangeNothingAndOneDropsAll) {
  const std::vector<double> plain = Run({1, 2, 3}, 2, /*p=*/0);
  EXPECT_EQ(Run({1, 2, 3}, 2, 0.9, /*training=*/false), plain);
  EXPECT_EQ(Run({1, 2, 3}, 2, 1), std::vector<double>(plain.size(), 0.0));
  Context ctx(*kernels_);  // no position: nothing is drawn
  const Uniform in(1, kernels_->allocator());
  ops::ScaledDotProductAttention(ctx, in.q, in.k, in.v, {});
  EXPECT_TRUE(ctx.ok());
  ops::AttentionOptions options;
  options.dropout = 0.5;
  ops::ScaledDotProductAttention(ctx, in.q, in.k, in.v, options);
  EXPECT_EQ(ctx.status().code(), absl::StatusCode::kFailedPrecondition);
}

// Compares the gradients of sum(dy * y) with differences of forwards that drop
// the same.
TEST_F(AttentionDropoutTest, BackwardDropsWhatForwardDropped) {
  const Shape shape = {2, 5, 3, 4};  // a head of queries, keys and values
  const Shape out = {2, 5, 1, 4}, rows = {2, 1, 5};
  Allocator& memory = kernels_->allocator();
  const auto draws = [&](const char* name, const Shape& of) {
    return MakeTensor(of, DType::kF64, NormalDraws(name, of.numel()), memory);
  };
  AttentionRule rule;
  rule.causal = true;
  rule.scale = 0.5;
  rule.dropout = MaskOf(0.4);
  const Tensor qkv = draws("qkv", shape), dy = draws("dy", out), none;
  Tensor y = Tensor::Empty(out, DType::kF64, memory);
  Tensor lse = Tensor::Empty(rows, DType::kF32, memory);
  const auto forward = [&] {
    EXPECT_TRUE(kernels_->AttentionForward(rule, qkv, none, none, y, lse).ok());
    double sum = 0;
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      sum += y.data<double>()[i] * dy.data<double>()[i];
    }
    return sum;
  };
  forward();
  Tensor dqkv = Tensor::Empty(shape, DType::kF64, memory), dk, dv;
  ASSERT_TRUE(
      kernels_
          ->AttentionBackward(rule, qkv, none, none, y, lse, dy, dqkv, dk, dv)
          .ok());
  std::vector<double> want;
  for (std::int64_t i = 0; i < qkv.numel(); ++i) {
    constexpr double kStep = 1e-5;
    double& x = qkv.data<double>()[i];
    const double before = x;
    x = before + kStep;
    const double above = forward();
    x = before - kStep;
    want.push_back((above - forward()) / (2 * kStep));
    x = before;
  }
  EXPECT_TRUE(Near(ValuesOf(dqkv), want, 1e-8));
}

// Positions have different values, so that a result shows which keys were
// dropped.
TEST_F(AttentionDropoutTest, ModulesTakeItAsAnOption) {
  const auto train = [&](Module& module, bool training) {
    for (Parameter* p : module.Parameters()) {
      p->value = Tensor::Zeros(p->shape, DType::kF32, kernels_->allocator());
      EXPECT_TRUE(kernels_->Fill(0.25, p->value).ok());
    }
    Context ctx(*kernels_);
    ctx.set_random({1, 2, 3});
    ctx.set_training(training);
    const Tensor y =
        module(ctx, MakeTensor({1, 6, 8}, DType::kF32, NormalDraws("x", 48),
                               kernels_->allocator()));
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return ValuesOf(y);
  };
  MultiheadAttention::Options options;
  MultiheadAttention plain(8, 2, options);
  options.dropout = 0.5;
  MultiheadAttention dropped(8, 2, options);
  EXPECT_EQ(train(dropped, false), train(plain, false));
  EXPECT_NE(train(dropped, true), train(plain, true));
  CausalSelfAttention::Options causal_options;
  CausalSelfAttention causal(8, 2, causal_options);
  causal_options.attention_dropout = 0.5;
  CausalSelfAttention causal_dropped(8, 2, causal_options);
  EXPECT_EQ(train(causal_dropped, false), train(causal, false));
  EXPECT_NE(train(causal_dropped, true), train(causal, true));
}

}  // namespace
}  // namespace troupe::nn
