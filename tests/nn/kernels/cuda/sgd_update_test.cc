// The fused kernel against a plain loop, bit for bit: on the emulation, and on
// a GPU where there is one.

#include "nn/kernels/cuda/sgd_update.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/third_party/emulated_cuda/test_device.h"

namespace troupe::nn {
namespace {

using emulated_cuda_test::CompareRuns;
using emulated_cuda_test::DeviceVector;
using emulated_cuda_test::WaitFor;
using emulated_cuda_test::WhyNoDevice;

// Numbers of both signs and many exponents, the same in every run.
DeviceVector<float> Numbers(std::int64_t count, std::uint32_t seed) {
  DeviceVector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = seed;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    const int exponent = static_cast<int>(state >> 28) - 12;
    const float mantissa = static_cast<float>(state >> 4 & 0xffffff);
    value = std::ldexp(mantissa / (1 << 24) - 0.5f, exponent);
  }
  return values;
}

// The formula of SgdRule, rounded to f32 after each operation; this file is
// compiled with -ffp-contract=off.
void PlainSgd(const SgdRule& rule, const StepScalars& scalars,
              const DeviceVector<float>& grad, DeviceVector<float>& param,
              DeviceVector<float>& momentum) {
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

// Equal bits, so that -0 and NaN count too.
void ExpectSameBits(const DeviceVector<float>& got,
                    const DeviceVector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(float)), 0)
        << what << "[" << i << "]: " << got[i] << ", want " << want[i];
  }
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
    if (!WhyNoDevice().empty()) GTEST_SKIP() << WhyNoDevice();
  }
};

class CudaSgdRulesTest : public CudaSgdUpdateTest,
                         public ::testing::WithParamInterface<Case> {
 protected:
  // Returns the parameters after three steps on `count` elements.
  DeviceVector<float> ThreeSteps(std::int64_t count) const;
};

DeviceVector<float> CudaSgdRulesTest::ThreeSteps(std::int64_t count) const {
  SgdRule rule;
  rule.lr_factor = 0.5;
  rule.momentum = GetParam().momentum;
  rule.dampening = GetParam().dampening;
  rule.weight_decay = GetParam().weight_decay;
  rule.nesterov = GetParam().nesterov;
  DeviceVector<StepScalars> scalars(1);
  scalars[0].lr = 0.2;
  scalars[0].loss_scale = 4;
  scalars[0].loss_count = GetParam().loss_count;
  DeviceVector<float> param = Numbers(count, /*seed=*/1);
  DeviceVector<float> momentum = Numbers(count, /*seed=*/2);
  DeviceVector<float> want_param = param, want_momentum = momentum;
  for (int i = 0; i < 3; ++i) {
    scalars[0].step = i;
    const DeviceVector<float> grad =
        Numbers(count, /*seed=*/3 + static_cast<std::uint32_t>(i));
    CudaSgdRange range;
    range.count_elems = count;
    range.scalars = scalars.data();
    range.grad = grad.data();
    range.param = param.data();
    range.momentum = momentum.data();
    const absl::Status status =
        WaitFor(CudaSgdUpdate(rule, range, /*stream=*/nullptr));
    EXPECT_TRUE(status.ok()) << status;
    PlainSgd(rule, scalars[0], grad, want_param, want_momentum);
  }
  ExpectSameBits(param, want_param, "param");
  ExpectSameBits(momentum, want_momentum, "momentum");
  return param;
}

TEST_P(CudaSgdRulesTest, ThreeStepsEqualThePlainLoop) {
  for (const std::int64_t count : {1, 64, 1000}) {
    EXPECT_EQ(CompareRuns([&] { return ThreeSteps(count); }), "") << count;
  }
  // More elements than threads, so that some take two: alike for every rule.
  if (GetParam().nesterov) ThreeSteps(/*count=*/1100000);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, CudaSgdRulesTest,
    ::testing::Values(Case{"Plain"}, Case{"Decay", 0, 0, 1e-4},
                      Case{"Momentum", 0.9}, Case{"Dampened", 0.9, 0.5, 1e-4},
                      Case{"Nesterov", 0.9, 0, 1e-4, true},
                      Case{"NoTargets", 0.9, 0, 1e-4, false, 0}),
    [](const ::testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST_F(CudaSgdUpdateTest, AStepThatIsSkippedChangesNothing) {
  const DeviceVector<float> before = Numbers(1000, /*seed=*/1);
  DeviceVector<float> param = before;
  DeviceVector<StepScalars> scalars(1);
  scalars[0].lr = 0.1;
  scalars[0].loss_count = 48;
  scalars[0].non_finite = 1;
  CudaSgdRange range;
  range.count_elems = 1000;
  range.scalars = scalars.data();
  range.grad = before.data();
  range.param = param.data();
  EXPECT_TRUE(
      WaitFor(CudaSgdUpdate(SgdRule(), range, /*stream=*/nullptr)).ok());
  ExpectSameBits(param, before, "param");
}

// The checks come before the device is touched: they need no GPU.
TEST(CudaSgdUpdateArgumentsTest, RefusesWhatItCannotDo) {
  float value = 0;
  StepScalars scalars;
  SgdRule rule;
  CudaSgdRange range;
  EXPECT_TRUE(CudaSgdUpdate(rule, range, nullptr).ok()) << "nothing to do";

  range.count_elems = 1;
  range.scalars = &scalars;
  range.grad = &value;
  EXPECT_EQ(CudaSgdUpdate(rule, range, nullptr).code(),
            absl::StatusCode::kInvalidArgument);
  range.param = &value;
  rule.momentum = 0.9;
  EXPECT_EQ(CudaSgdUpdate(rule, range, nullptr).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::nn
