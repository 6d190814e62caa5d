#include "tools/profile/op_clock.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"

namespace troupe::tools {
namespace {

constexpr std::int64_t kTickNanos = 5;

class OpClockTest : public ::testing::Test {
 protected:
  OpClockTest() { clock_.Watch(*kernels_); }

  // Each reading is a tick after the one before.
  OpClock clock_{[this] { return now_ += kTickNanos; }};
  const std::unique_ptr<nn::Kernels> kernels_ = nn::CreateCpuKernels({});
  nn::Tensor x_ =
      nn::Tensor::Zeros({4}, nn::DType::kF32, kernels_->allocator());
  nn::Tensor y_ =
      nn::Tensor::Zeros({4}, nn::DType::kF32, kernels_->allocator());

 private:
  std::int64_t now_ = 0;
};

TEST_F(OpClockTest, CountsBetweenStartAndStop) {
  ASSERT_TRUE(kernels_->Fill(1, x_).ok());
  clock_.Start();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(kernels_->Fill(-2, x_).ok());
  ASSERT_TRUE(kernels_->ReluForward(x_, y_).ok());
  clock_.Stop();
  ASSERT_TRUE(kernels_->Fill(1, x_).ok());

  const std::vector<OpClock::Time> times = clock_.times();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].name, "Fill");
  EXPECT_EQ(times[0].calls, 3);
  EXPECT_DOUBLE_EQ(times[0].seconds, 3 * kTickNanos * 1e-9);
  EXPECT_EQ(times[1].name, "ReluForward");
  EXPECT_EQ(times[1].calls, 1);
  EXPECT_DOUBLE_EQ(times[1].seconds, kTickNanos * 1e-9);
  // Two readings an op, and the one of Stop().
  EXPECT_DOUBLE_EQ(clock_.seconds(), 9 * kTickNanos * 1e-9);
}

TEST_F(OpClockTest, OpsComputeAndFailAsWithoutIt) {
  ASSERT_TRUE(kernels_->Fill(-2, x_).ok());
  ASSERT_TRUE(kernels_->Add(x_, x_, y_).ok());
  EXPECT_EQ(y_.span<float>()[3], -4);
  nn::Tensor numbers =
      nn::Tensor::Zeros({4}, nn::DType::kI64, kernels_->allocator());
  const absl::Status status = kernels_->ReluForward(numbers, numbers);
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "ReluForward")) << status;
  EXPECT_EQ(kernels_->Describe(), nn::CreateCpuKernels({})->Describe());
}

}  // namespace
}  // namespace troupe::tools
