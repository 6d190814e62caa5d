// The fused kernel against a plain loop, bit for bit. Skips itself where there
// is no GPU.

#include "nn/kernels/cuda/sgd_update.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nn/kernels/cuda/device_info.h"

namespace troupe::nn {
namespace {

// Device memory for [count] values, freed at the end of the test.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values)
      : bytes_(values.size() * sizeof(T)) {
    EXPECT_EQ(cudaMalloc(&data_, bytes_ + 1), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes_, cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* get() { return static_cast<T*>(data_); }
  std::vector<T> ToHost() const {
    std::vector<T> values(bytes_ / sizeof(T));
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes_, cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  const std::size_t bytes_;
  void* data_ = nullptr;
};

// Numbers of both signs and many exponents, the same in every run.
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

// The formula of SgdRule, rounded to f32 after each operation; this file is
// compiled with -ffp-contract=off.
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

// Equal bits, so that -0 and NaN count too.
void ExpectSameBits(const std::vector<float>& got,
                    const std::vector<float>& want, const std::string& what) {
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
    const auto devices = ListCudaDevices();
    if (!devices.ok()) GTEST_SKIP() << devices.status();
    if (devices->empty()) GTEST_SKIP() << "the driver sees no GPU";
  }
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
  for (const std::int64_t count : {1, 64, 1000, 5000000}) {
    std::vector<float> param = Numbers(count, /*seed=*/1);
    std::vector<float> momentum = Numbers(count, /*seed=*/2);
    DeviceArray device_param(param), device_momentum(momentum);
    for (int i = 0; i < 3; ++i) {
      scalars.step = i;
      const std::vector<float> grad = Numbers(count, /*seed=*/3 + i);
      DeviceArray device_grad(grad);
      DeviceArray<StepScalars> device_scalars({scalars});
      CudaSgdRange range;
      range.count_elems = count;
      range.scalars = device_scalars.get();
      range.grad = device_grad.get();
      range.param = device_param.get();
      range.momentum = device_momentum.get();
      ASSERT_TRUE(CudaSgdUpdate(rule, range, /*stream=*/nullptr).ok());
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      PlainSgd(rule, scalars, grad, param, momentum);
    }
    ExpectSameBits(device_param.ToHost(), param, "param");
    ExpectSameBits(device_momentum.ToHost(), momentum, "momentum");
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
  DeviceArray device_param(param), device_grad(param);
  DeviceArray<StepScalars> device_scalars({scalars});
  CudaSgdRange range;
  range.count_elems = 1000;
  range.scalars = device_scalars.get();
  range.grad = device_grad.get();
  range.param = device_param.get();
  ASSERT_TRUE(CudaSgdUpdate(SgdRule(), range, /*stream=*/nullptr).ok());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ExpectSameBits(device_param.ToHost(), param, "param");
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
