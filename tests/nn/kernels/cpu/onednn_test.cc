// Tests errors of the library; its numbers are tested in cpu_kernels_test.cc.

#include "nn/kernels/cpu/onednn.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::nn::cpu {
namespace {

// Returns a valid shape: a 3x3 window over one 4x4 image, 16 channels to 16.
ImageShape Sound() { return {1, 4, 4, 16, 2, 2, 16, 3, 3, 1, 1, 0, 0}; }

TEST(OneDnn, AnErrorIsAStatusOnEveryCall) {
  CachingAllocator allocator;
  OneDnn onednn(/*threads=*/1, allocator);
  ImageShape wrong = Sound();
  wrong.stride_h = 0;
  std::vector<float> x(16 * 16, 1.0f), w(16 * 16 * 9, 1.0f), y(4 * 16, 0.0f);
  for (int call = 0; call < 2; ++call) {
    const absl::Status status =
        onednn.Conv(OneDnn::Way::kForward, wrong, x.data(), w.data(), y.data());
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << call;
    EXPECT_NE(status.message().find("Conv2dForward of [1, 4, 4, 16]"),
              std::string::npos)
        << status;
  }
  EXPECT_TRUE(
      onednn.Conv(OneDnn::Way::kForward, Sound(), x.data(), w.data(), y.data())
          .ok());
  EXPECT_EQ(y, std::vector<float>(4 * 16, 16 * 9.0f));
}

}  // namespace
}  // namespace troupe::nn::cpu
