// Compares SGD on a GPU with a plain loop, bit for bit: on the emulation, and
// on a GPU if there is one (optimizer_gpu_test).

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nn/kernels/kernels.h"
#include "tests/base/cuda/emulated/test_device.h"
#include "tests/nn/kernels/cuda/test_kernels.h"

namespace troupe::nn {
namespace {

// Returns numbers of both signs and many exponents, the same in every run.
std::vector<float> Numbers(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = seed;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    const int exponent = static_cast<int>(state >> 28) - 12;
    const float mantissa = static_cast<float>(state >> 4 & 0xffffff);
    value = std::ldexp(mantissa / (1 << 24) - 0.5f, exponent);
  }
  return values;
}

// Computes the formula of SgdRule, rounded to f32 after each operation; this
// file is compiled with -ffp-contract=off.
void PlainSgd(const SgdRule& rule, const StepScalars& scalars,
              const std::vector<float>& grad, std::vector<float>& param,
              std::vector<float>& momentum) {
  const float inv_divisor = static_cast<float>(scalars.InverseDivisor());
  const float minus_lr = static_cast<float>(-(scalars.lr * rule.lr_factor));
  const float weight_decay = static_cast<float>(rule.weight_decay);
  const float m = static_cast<float>(rule.momentum);
  const float one_minus_dampening = static_cast<float>(1.0 - rule.dampening);
  for (std::size_t i = 0; i < grad.size(); ++i) {
    float g = grad[i] * inv_divisor;
    if (rule.weight_decay != 0) g = g + weight_decay * param[i];
    if (rule.momentum != 0) {
      momentum[i] =
          scalars.step == 0 ? g : m * momentum[i] + one_minus_dampening * g;
      g = rule.nesterov ? g + m * momentum[i] : momentum[i];
    }
    param[i] = param[i] + minus_lr * g;
  }
}

// Compares bits, so that -0 differs from 0 and NaN equals NaN.
void ExpectSameBits(const std::vector<float>& got,
                    const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(float)), 0)
        << what << "[" << i << "]: " << got[i] << ", want " << want[i];
  }
}

std::vector<float> ToHost(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.numel()};
}

struct Case {
  std::string name;
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  double loss_count = 48;
};

class CudaSgdUpdateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = emulated_cuda_test::WhyNoDevice();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    kernels_ = CreateTestKernels();
  }

  Tensor OnDevice(const std::vector<float>& values) {
    return Tensor::Of<float>({static_cast<std::int64_t>(values.size())}, values,
                             kernels_->allocator());
  }

  std::unique_ptr<Kernels> kernels_;
};

class CudaSgdRulesTest : public CudaSgdUpdateTest,
                         public ::testing::WithParamInterface<Case> {};

TEST_P(CudaSgdRulesTest, ThreeStepsEqualThePlainLoop) {
  SgdRule rule;
  rule.lr_factor = 0.5;
  rule.momentum = GetParam().momentum;
  rule.dampening = GetParam().dampening;
  rule.weight_decay = GetParam().weight_decay;
  rule.nesterov = GetParam().nesterov;
  StepScalars scalars;
  scalars.lr = 0.2;
  scalars.loss_scale = 4;
  scalars.loss_count = GetParam().loss_count;
  Tensor on_device = HostScalars(scalars, kernels_->allocator());
  for (const std::int64_t count : {1, 64, 1001, 100000}) {
    std::vector<float> param = Numbers(count, /*seed=*/1);
    std::vector<float> momentum = Numbers(count, /*seed=*/2);
    Tensor params = OnDevice(param), momentums = OnDevice(momentum), none;
    for (int i = 0; i < 3; ++i) {
      scalars.step = i;
      const std::vector<float> grad = Numbers(count, /*seed=*/3 + i);
      ASSERT_TRUE(kernels_->SetStepScalars(scalars, on_device).ok());
      ASSERT_TRUE(kernels_
                      ->SgdUpdate(rule, on_device, OnDevice(grad), params,
                                  rule.momentum != 0 ? momentums : none)
                      .ok());
      PlainSgd(rule, scalars, grad, param, momentum);
    }
    ExpectSameBits(ToHost(params), param, "param");
    ExpectSameBits(ToHost(momentums), momentum, "momentum");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, CudaSgdRulesTest,
    ::testing::Values(Case{"Plain"}, Case{"Decay", 0, 0, 1e-4},
                      Case{"Momentum", 0.9}, Case{"Dampened", 0.9, 0.5, 1e-4},
                      Case{"Nesterov", 0.9, 0, 1e-4, true},
                      Case{"NoTargets", 0.9, 0, 1e-4, false, 0}),
    [](const ::testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST_F(CudaSgdUpdateTest, AStepThatIsSkippedChangesNothing) {
  const std::vector<float> param = Numbers(1000, /*seed=*/1);
  StepScalars scalars;
  scalars.lr = 0.1;
  scalars.loss_count = 48;
  scalars.non_finite = 1;
  Tensor on_device = HostScalars(scalars, kernels_->allocator());
  SgdRule rule;
  rule.momentum = 0.9;
  Tensor params = OnDevice(param), momentum = OnDevice(param);
  ASSERT_TRUE(
      kernels_->SgdUpdate(rule, on_device, OnDevice(param), params, momentum)
          .ok());
  ExpectSameBits(ToHost(params), param, "param");
  ExpectSameBits(ToHost(momentum), param, "momentum");
}

TEST_F(CudaSgdUpdateTest, MomentumWithoutABufferIsRefused) {
  SgdRule rule;
  rule.momentum = 0.9;
  Tensor scalars = HostScalars(StepScalars(), kernels_->allocator());
  Tensor param = OnDevice({1, 2}), none;
  EXPECT_EQ(
      kernels_->SgdUpdate(rule, scalars, OnDevice({1, 2}), param, none).code(),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::nn
