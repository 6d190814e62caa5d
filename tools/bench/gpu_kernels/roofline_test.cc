#include "tools/bench/gpu_kernels/roofline.h"

#include "gtest/gtest.h"

namespace troupe::bench {
namespace {

TEST(Roofline, GpusAreFoundByWhatTheDriverCallsThem) {
  ASSERT_NE(FindGpuPeaks("NVIDIA H200"), nullptr);
  EXPECT_EQ(FindGpuPeaks("cuda:0, NVIDIA H200, cuDNN 9")->gb_per_second, 4800);
  EXPECT_EQ(FindGpuPeaks("NVIDIA H100 80GB HBM3")->gb_per_second, 3350);
  EXPECT_EQ(FindGpuPeaks("NVIDIA H100 PCIe")->gb_per_second, 2000);
  EXPECT_EQ(FindGpuPeaks("NVIDIA A100-SXM4-40GB")->gb_per_second, 1555);
  EXPECT_EQ(FindGpuPeaks("NVIDIA A100-SXM4-80GB")->gb_per_second, 2039);
  EXPECT_EQ(FindGpuPeaks("NVIDIA GeForce GTX 1080"), nullptr);
  EXPECT_EQ(FindGpuPeaks(""), nullptr);
}

TEST(Roofline, TheLargerOfArithmeticAndMemoryBinds) {
  const GpuPeaks peaks{"test", 10, 50, 100, 1000};
  const Bound compute = BoundOf(peaks, Arithmetic::kF32, 10e12, 1e9);
  EXPECT_DOUBLE_EQ(compute.seconds, 1.0);
  EXPECT_FALSE(compute.by_memory);
  const Bound memory = BoundOf(peaks, Arithmetic::kBF16, 1e12, 2000e9);
  EXPECT_DOUBLE_EQ(memory.seconds, 2.0);
  EXPECT_TRUE(memory.by_memory);
  EXPECT_DOUBLE_EQ(BoundOf(peaks, Arithmetic::kTf32, 50e12, 0).seconds, 1.0);
}

}  // namespace
}  // namespace troupe::bench
