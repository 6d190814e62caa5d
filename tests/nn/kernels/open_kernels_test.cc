#include "nn/kernels/open_kernels.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

TEST(OpenKernels, OpensWhatEveryBuildHas) {
  for (const char* name : {"cpu:0", "reference:0"}) {
    const auto kernels = OpenKernels(*Device::Parse(name), {});
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    EXPECT_EQ((*kernels)->device().ToString(), name);
    EXPECT_TRUE(CheckDevices(*Device::Parse(name), /*ranks=*/99).ok());
  }
}

// This test links no GPU.
TEST(OpenKernels, SaysWhereThereIsNoCuda) {
  const absl::Status status =
      OpenKernels(Device::Parse("cuda")->ForRank(1), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "no kernels for cuda:1: this program was built without CUDA; build "
            "it with --config=cuda, or use cpu:0");
  EXPECT_EQ(CheckDevices(*Device::Parse("cuda"), /*ranks=*/2).message(),
            "no kernels for cuda: this program was built without CUDA; build "
            "it with --config=cuda, or use cpu:0");
}

}  // namespace
}  // namespace troupe::nn
