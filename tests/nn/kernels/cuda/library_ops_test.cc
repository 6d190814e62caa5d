// What linear layers and convolutions on libraries do beside computing: the op
// suite (ops_test.cc) says that their numbers are right.

#include "nn/kernels/cuda/library_ops.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/nn/kernels/cuda/test_kernels.h"
#include "tests/nn/testing/tensor_values.h"
#include "tests/third_party/emulated_cuda/test_device.h"

namespace troupe::nn {
namespace {

using ::testing::HasSubstr;

// Multiples of 1/8 in [-1, 1], which every dtype has.
std::vector<double> Numbers(std::int64_t count, std::int64_t salt) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<double>((i * 7 + salt * 5 + i / 3) % 17 - 8) /
                      8);
  }
  return numbers;
}

class LibraryOpsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!emulated_cuda_test::WhyNoDevice().empty()) {
      GTEST_SKIP() << emulated_cuda_test::WhyNoDevice();
    }
    kernels_ = CreateTestKernels();
    oracle_ = CreateReferenceKernels();
  }

  Tensor Make(Kernels& kernels, const Shape& shape, DType dtype,
              std::int64_t salt) {
    return MakeTensor(shape, dtype, Numbers(shape.numel(), salt),
                      kernels.allocator());
  }
  Tensor Empty(Kernels& kernels, const Shape& shape, DType dtype) {
    return Tensor::Empty(shape, dtype, kernels.allocator());
  }
  // The same numbers, one element behind a boundary of 16 bytes.
  Tensor Shifted(const Tensor& t) {
    Tensor room =
        Tensor::Empty({t.numel() + 1}, t.dtype(), kernels_->allocator());
    Tensor shifted = room.FlatView(1, t.shape());
    const auto* from = static_cast<const char*>(t.raw());
    std::copy(from, from + t.bytes(), static_cast<char*>(shifted.raw()));
    return shifted;
  }

  std::unique_ptr<Kernels> kernels_;
  std::unique_ptr<Kernels> oracle_;
};

TEST_F(LibraryOpsTest, OperandsAnywhereGiveTheSameBits) {
  Kernels& gpu = *kernels_;
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const Tensor x = Make(gpu, {5, 7}, dtype, 1);
    const Tensor w = Make(gpu, {6, 7}, dtype, 2);
    const Tensor b = Make(gpu, {6}, dtype, 3);
    Tensor y = Empty(gpu, {5, 6}, dtype);
    ASSERT_TRUE(gpu.LinearForward(x, w, b, y).ok());
    Tensor shifted = Shifted(Make(gpu, {5, 6}, dtype, 4));
    ASSERT_TRUE(
        gpu.LinearForward(Shifted(x), Shifted(w), Shifted(b), shifted).ok());
    EXPECT_TRUE(BitEqual(y, shifted)) << DTypeName(dtype);

    Tensor dw = Make(gpu, {6, 7}, dtype, 5);
    Tensor db = Make(gpu, {6}, dtype, 6);
    Tensor shifted_dw = Shifted(dw), shifted_db = Shifted(db);
    ASSERT_TRUE(
        gpu.LinearBackwardWeight(x, y, /*accumulate=*/true, dw, db).ok());
    ASSERT_TRUE(gpu.LinearBackwardWeight(Shifted(x), Shifted(y),
                                         /*accumulate=*/true, shifted_dw,
                                         shifted_db)
                    .ok());
    EXPECT_TRUE(BitEqual(dw, shifted_dw)) << DTypeName(dtype);
    EXPECT_TRUE(BitEqual(db, shifted_db)) << DTypeName(dtype);
  }
}

TEST_F(LibraryOpsTest, ImagesAnywhereGiveTheSameBits) {
  Kernels& gpu = *kernels_;
  Window2d window;
  window.kernel_h = 3, window.kernel_w = 2;
  window.pad_h = 1;
  // Biases are added by the plan or afterwards.
  for (std::int64_t O : {3, 4}) {
    const Tensor x = Make(gpu, {2, 5, 4, 3}, DType::kF32, 1);
    const Tensor w = Make(gpu, {O, 3, 3, 2}, DType::kF32, 2);
    const Tensor b = Make(gpu, {O}, DType::kF32, 3);
    Tensor y = Empty(gpu, {2, 5, 3, O}, DType::kF32);
    ASSERT_TRUE(gpu.Conv2dForward(window, x, w, b, y).ok());
    Tensor shifted = Shifted(Make(gpu, y.shape(), DType::kF32, 4));
    ASSERT_TRUE(
        gpu.Conv2dForward(window, Shifted(x), Shifted(w), Shifted(b), shifted)
            .ok());
    EXPECT_TRUE(BitEqual(y, shifted));
    Tensor dx = Empty(gpu, x.shape(), DType::kF32);
    Tensor shifted_dx = Shifted(Make(gpu, x.shape(), DType::kF32, 5));
    ASSERT_TRUE(gpu.Conv2dBackwardInput(window, y, w, dx).ok());
    ASSERT_TRUE(
        gpu.Conv2dBackwardInput(window, shifted, Shifted(w), shifted_dx).ok());
    EXPECT_TRUE(BitEqual(dx, shifted_dx));
  }
}

// f32 gradients beside bf16 operands are those of the same numbers in f32.
TEST_F(LibraryOpsTest, GradientsMayBeWiderThanTheOperands) {
  struct Case {
    Shape x, dy, dw;
    Window2d window;
  };
  Window2d wide, strided, pixel;
  wide.kernel_h = 3, wide.kernel_w = 2;
  strided.stride_h = strided.stride_w = 2;
  const std::vector<Case> cases = {
      {{2, 5, 4, 3}, {2, 3, 3, 4}, {4, 3, 3, 2}, wide},
      {{2, 5, 5, 3}, {2, 3, 3, 4}, {4, 3, 1, 1}, strided},
      {{2, 5, 4, 3}, {2, 5, 4, 4}, {4, 3, 1, 1}, pixel},
  };
  for (const Case& c : cases) {
    for (bool accumulate : {false, true}) {
      const auto run = [&](Kernels& kernels, DType dtype) {
        const Tensor x = Make(kernels, c.x, dtype, 1);
        const Tensor dy = Make(kernels, c.dy, dtype, 2);
        Tensor dw = Make(kernels, c.dw, DType::kF32, 3);
        Tensor db = Make(kernels, {c.dy[3]}, DType::kF32, 4);
        EXPECT_TRUE(
            kernels.Conv2dBackwardWeight(c.window, x, dy, accumulate, dw, db)
                .ok());
        std::vector<double> all = ValuesOf(dw);
        for (double value : ValuesOf(db)) all.push_back(value);
        return all;
      };
      // Sums of multiples of 1/64 below 2^10: exact in f32, in any order.
      EXPECT_EQ(run(*kernels_, DType::kBF16), run(*oracle_, DType::kF32));
    }
  }
}

TEST_F(LibraryOpsTest, WhatLibrariesDoNotComputeIsNamed) {
  Kernels& gpu = *kernels_;
  const Tensor x = Empty(gpu, {2, 3}, DType::kF64);
  const Tensor w = Empty(gpu, {4, 3}, DType::kF64);
  Tensor y = Empty(gpu, {2, 4}, DType::kF64);
  const absl::Status status = gpu.LinearForward(x, w, Tensor(), y);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  for (const char* word : {"LinearForward", "f64", "cuda:0"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(word));
  }
}

TEST_F(LibraryOpsTest, ErrorsBeginWithTheOp) {
  Kernels& gpu = *kernels_;
  const Tensor x = Empty(gpu, {2, 3}, DType::kBF16);
  const Tensor w = Empty(gpu, {4, 3}, DType::kBF16);
  Tensor y = Empty(gpu, {2, 4}, DType::kF16);  // no dtype for the result
  const absl::Status status = gpu.LinearForward(x, w, Tensor(), y);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message().find("LinearForward on cuda:0: matmul:bf16:f16:"),
            0u)
      << status;
}

}  // namespace
}  // namespace troupe::nn
