// Runs in every build: with CUDA it tests the list of devices, without CUDA the
// error messages of the stub.

#include "nn/kernels/cuda/device/device_info.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cuda/kernel_parts/dotted_version.h"

namespace troupe::nn {
namespace {

using ::testing::HasSubstr;

bool BuiltWithCuda() { return GetCudaVersions().ok(); }

TEST(CudaDeviceInfoTest, WithoutCudaSaysHowToBuildWithIt) {
  if (BuiltWithCuda()) GTEST_SKIP() << "this build has CUDA";
  for (const absl::Status& status :
       {ListCudaDevices().status(), GetCudaVersions().status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("--config=cuda"));
  }
}

TEST(DottedVersionTest, HasMajorMinorAndPatch) {
  EXPECT_EQ(cuda::DottedVersion(91900), "9.19.0");
  EXPECT_EQ(cuda::DottedVersion(130002), "13.0.2");
  EXPECT_EQ(cuda::DottedVersion(22809), "2.28.9");
}

TEST(CudaDeviceInfoTest, VersionsOfEveryLibrary) {
  if (!BuiltWithCuda()) GTEST_SKIP() << GetCudaVersions().status();
  const CudaVersions versions = *GetCudaVersions();
  EXPECT_THAT(versions.runtime, HasSubstr("."));
  EXPECT_THAT(versions.cublas_lt, HasSubstr("."));
  EXPECT_THAT(versions.cudnn, HasSubstr("."));
  EXPECT_THAT(versions.nccl, HasSubstr("."));
  EXPECT_THAT(versions.ToString(), HasSubstr("cuDNN " + versions.cudnn));
}

TEST(CudaDeviceInfoTest, DevicesAreNumberedAndHaveMemory) {
  const absl::StatusOr<std::vector<CudaDeviceInfo>> devices = ListCudaDevices();
  if (!devices.ok()) GTEST_SKIP() << devices.status();
  if (devices->empty()) GTEST_SKIP() << "the driver sees no GPU";
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const CudaDeviceInfo& device = (*devices)[i];
    EXPECT_EQ(device.ordinal, static_cast<int>(i));
    EXPECT_GT(device.memory_bytes, 0u);
    EXPECT_GT(device.multiprocessors, 0);
    EXPECT_THAT(device.ToString(), HasSubstr(device.name));
  }
}

}  // namespace
}  // namespace troupe::nn
