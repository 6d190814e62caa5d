// Tests DropInexact() with plans that compute plain sums of rounded operands,
// as a lossy algorithm would: on the emulation, and on a GPU if there is one.

#include "nn/kernels/cuda/libraries/conv_exactness.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/cuda/libraries/direct_conv.h"
#include "nn/tensor/tensor.h"
#include "tests/base/cuda/emulated/test_device.h"
#include "tests/nn/kernels/cuda/test_kernels.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn::cuda {
namespace {

using emulated_cuda_test::WaitFor;

// Rounds a number to the first `bits` bits of its fraction; f32 has 23.
float Rounded(float number, int bits) {
  std::uint32_t word;
  std::memcpy(&word, &number, sizeof(word));
  if (bits < 23) {
    const std::uint32_t half = 1u << (22 - bits);
    word = (word + half) & ~(2 * half - 1);
  }
  std::memcpy(&number, &word, sizeof(word));
  return number;
}

// Computes plain sums in which the image or the output gradient is replaced by
// its rounded copy.
class LossyPlan final : public ConvPlan {
 public:
  LossyPlan(const ConvSpec& spec, int bits, ConvOperands rounded)
      : ConvPlan(spec, std::to_string(bits), DirectConvScratchBytes(spec),
                 /*adds_bias=*/false),
        rounded_(rounded) {}

  absl::Status Run(const ConvOperands& operands, void* workspace,
                   cudaStream_t stream) override {
    ++runs;
    if (fails) return absl::InternalError("refused");
    ConvOperands lossy = operands;
    if (rounded_.image != nullptr) lossy.image = rounded_.image;
    if (rounded_.output != nullptr) lossy.output = rounded_.output;
    return DirectConv(spec(), lossy, workspace, stream);
  }

  bool fails = false;
  int runs = 0;

 private:
  const ConvOperands rounded_;
};

class ConvExactnessTest : public testing::TestWithParam<ConvWay> {
 protected:
  static constexpr int kAllBits = 23, kTf32Bits = 10, kWinogradBits = 16;

  void SetUp() override {
    const std::string why_not = emulated_cuda_test::WhyNoDevice();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    CachingAllocator::Options options;
    options.source = SharedMemory();
    memory_ = std::make_unique<CachingAllocator>(options);
    spec_.way = GetParam();
    spec_.N = 4, spec_.H = spec_.W = 12, spec_.C = 6, spec_.O = 16;
    spec_.window.kernel_h = spec_.window.kernel_w = 5;
    operands_.image = Draws("image", spec_.image_elems(), kAllBits);
    operands_.weight = Draws("weight", spec_.weight_elems(), kAllBits);
    operands_.output = Draws("output", spec_.output_elems(), kAllBits);
  }

  void* Draws(const std::string& name, std::int64_t count, int bits) {
    const Tensor drawn =
        MakeTensor({count}, DType::kF32, NormalDraws(name, count), *memory_);
    for (float& number : drawn.span<float>()) number = Rounded(number, bits);
    kept_.push_back(drawn);
    return drawn.device_data();
  }
  void Add(int bits) {
    ConvOperands rounded;
    if (GetParam() == ConvWay::kBackwardInput) {
      rounded.output = Draws("output", spec_.output_elems(), bits);
    } else {
      rounded.image = Draws("image", spec_.image_elems(), bits);
    }
    plans_.push_back(std::make_unique<LossyPlan>(spec_, bits, rounded));
    times_.push_back({1.0f});
  }
  LossyPlan& Plan(int i) { return static_cast<LossyPlan&>(*plans_[i]); }
  // Calls DropInexact(); returns '+' for each candidate that still has times
  // and '-' for the rest.
  std::string Kept() {
    const absl::Status status = WaitFor(
        DropInexact(plans_, operands_, *memory_, /*stream=*/nullptr, times_));
    EXPECT_TRUE(status.ok()) << status;
    std::string kept;
    for (const CandidateTimes& times : times_)
      kept += times.empty() ? "-" : "+";
    return kept;
  }

  std::unique_ptr<CachingAllocator> memory_;
  std::vector<Tensor> kept_;
  ConvSpec spec_;
  ConvOperands operands_;
  std::vector<std::unique_ptr<ConvPlan>> plans_;
  std::vector<CandidateTimes> times_;
};

TEST_P(ConvExactnessTest, WhatLosesBitsHasNoTimes) {
  for (int bits : {kTf32Bits, kAllBits, kWinogradBits}) Add(bits);
  EXPECT_EQ(Kept(), "-+-");
}

TEST_P(ConvExactnessTest, WhereAllLoseBitsTheBestIsKept) {
  for (int bits : {kTf32Bits, kWinogradBits, kTf32Bits}) Add(bits);
  EXPECT_EQ(Kept(), "-+-");
}

TEST_P(ConvExactnessTest, WhatFailedBeforeIsNotAsked) {
  for (int bits : {kAllBits, kAllBits, kTf32Bits}) Add(bits);
  times_[0].clear();
  Plan(2).fails = true;
  EXPECT_EQ(Kept(), "-+-");
  EXPECT_EQ(Plan(0).runs, 0);
}

TEST_P(ConvExactnessTest, NothingIsKnownWhereAllFailNow) {
  Add(kTf32Bits);
  Plan(0).fails = true;
  EXPECT_EQ(Kept(), "+");
}

// The bound is above the rounding errors of a long f32 sum and below those of
// TF32.
TEST_P(ConvExactnessTest, TheBoundLiesBetweenF32AndTf32) {
  spec_.N = 256;
  spec_.H = spec_.W = 56;
  EXPECT_GT(InexactFrom(spec_), 1e-6);
  EXPECT_LT(InexactFrom(spec_), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Ways, ConvExactnessTest,
                         testing::Values(ConvWay::kForward,
                                         ConvWay::kBackwardInput,
                                         ConvWay::kBackwardWeight));

}  // namespace
}  // namespace troupe::nn::cuda
