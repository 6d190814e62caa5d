// Tests of linear layers and convolutions by libraries beyond their numbers,
// which the op suite tests (ops_test.cc).

#include "nn/kernels/cuda/libraries/library_ops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/base/cuda/emulated/test_device.h"
#include "tests/nn/kernels/cuda/test_kernels.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

using ::testing::HasSubstr;

// Returns multiples of 1/8 in [-1, 1], which every dtype represents exactly.
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
  // Returns a copy that begins one element after a multiple of 16 bytes.
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
  // For one of the two, the emulated plan adds the bias; for the other, the op.
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
    ASSERT_EQ(gpu.Conv2dBackwardInput(window, y, w, dx), absl::OkStatus());
    ASSERT_TRUE(
        gpu.Conv2dBackwardInput(window, shifted, Shifted(w), shifted_dx).ok());
    EXPECT_TRUE(BitEqual(dx, shifted_dx));
  }
}

// f32 gradients of bf16 operands equal those of the same numbers in f32. If a
// library computes the convolution, they are rounded to bf16 before they are
// added.
TEST_F(LibraryOpsTest, GradientsMayBeWiderThanTheOperands) {
  struct Case {
    Shape x, dy, dw;
    Window2d window;
    bool rounded;
  };
  Window2d wide, strided, pixel;
  wide.kernel_h = 3, wide.kernel_w = 2;
  strided.stride_h = strided.stride_w = 2;
  const std::vector<Case> cases = {
      {{2, 5, 4, 3}, {2, 3, 3, 4}, {4, 3, 3, 2}, wide, true},
      {{2, 5, 5, 3}, {2, 3, 3, 4}, {4, 3, 1, 1}, strided, true},
      {{2, 5, 4, 3}, {2, 5, 4, 4}, {4, 3, 1, 1}, pixel, false},
  };
  for (const Case& c : cases) {
    for (bool accumulate : {false, true}) {
      const auto run = [&](Kernels& kernels, DType dtype, bool adds) {
        const Tensor x = Make(kernels, c.x, dtype, 1);
        const Tensor dy = Make(kernels, c.dy, dtype, 2);
        Tensor dw = Make(kernels, c.dw, DType::kF32, 3);
        Tensor db = Make(kernels, {c.dy[3]}, DType::kF32, 4);
        EXPECT_TRUE(
            kernels.Conv2dBackwardWeight(c.window, x, dy, adds, dw, db).ok());
        return std::make_pair(ValuesOf(dw), ValuesOf(db));
      };
      // Sums of multiples of 1/64 below 2^10: exact in f32, in any order.
      auto [dw, db] = run(*oracle_, DType::kF32, accumulate);
      if (c.rounded) {
        dw = run(*oracle_, DType::kF32, /*adds=*/false).first;
        const std::vector<double> before =
            ValuesOf(Make(*oracle_, c.dw, DType::kF32, 3));
        for (std::size_t i = 0; i < dw.size(); ++i) {
          dw[i] = ToF64(FromF64<bf16>(dw[i])) + (accumulate ? before[i] : 0);
        }
      }
      const auto [gpu_dw, gpu_db] = run(*kernels_, DType::kBF16, accumulate);
      EXPECT_EQ(gpu_dw, dw);
      EXPECT_EQ(gpu_db, db);
    }
  }
}

// Packing (nn/kernels/attention.h) and sizes of the operands.
struct AttentionShapes {
  std::int64_t N, T, S, Hq, Hkv, D;
  bool causal;
  int tensors;  // 1: qkv, 2: q and kv, 3: q, k and v

  Shape Of(int tensor) const {
    const std::int64_t rest = tensors == 3 ? 1 : tensors == 2 ? 2 : 0;
    if (tensor == 0) return {N, T, tensors == 1 ? Hq + 2 * Hkv : Hq, D};
    return {N, S, rest * Hkv, D};
  }
};

// Returns the outputs of attention and of its gradient, concatenated.
std::vector<double> Attend(Kernels& kernels, const AttentionShapes& c,
                           DType dtype) {
  AttentionRule rule;
  rule.causal = c.causal;
  rule.scale = 0.25;
  std::vector<Tensor> in(3), gradients(3);
  for (int i = 0; i < c.tensors; ++i) {
    in[i] = MakeTensor(c.Of(i), dtype, Numbers(c.Of(i).numel(), i),
                       kernels.allocator());
    gradients[i] = Tensor::Empty(c.Of(i), dtype, kernels.allocator());
  }
  const Shape out = {c.N, c.T, c.Hq, c.D};
  Tensor y = Tensor::Empty(out, dtype, kernels.allocator());
  const Tensor dy =
      MakeTensor(out, dtype, Numbers(out.numel(), 5), kernels.allocator());
  Tensor lse =
      Tensor::Empty({c.N, c.Hq, c.T}, DType::kF32, kernels.allocator());
  absl::Status status =
      kernels.AttentionForward(rule, in[0], in[1], in[2], y, lse);
  EXPECT_TRUE(status.ok()) << status;
  status = kernels.AttentionBackward(rule, in[0], in[1], in[2], y, lse, dy,
                                     gradients[0], gradients[1], gradients[2]);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<double> all = ValuesOf(y);
  for (double value : ValuesOf(lse)) all.push_back(value);
  for (int i = 0; i < c.tensors; ++i) {
    for (double value : ValuesOf(gradients[i])) all.push_back(value);
  }
  return all;
}

// The sizes are those that a library may compute: on a GPU its first guess
// does, on the emulation kernels of our own. Libraries also round the
// probabilities.
TEST_F(LibraryOpsTest, AttentionIsThatOfTheReference) {
  for (const AttentionShapes& c :
       {AttentionShapes{2, 64, 64, 2, 2, 64, true, 1},
        AttentionShapes{1, 130, 130, 2, 1, 32, true, 1},
        AttentionShapes{1, 65, 200, 2, 2, 16, false, 2},
        AttentionShapes{2, 96, 80, 4, 2, 8, false, 3},
        AttentionShapes{1, 70, 129, 1, 1, 128, true, 3}}) {
    for (DType dtype : {DType::kBF16, DType::kF16}) {
      const std::vector<double> want = Attend(*oracle_, c, dtype);
      const std::vector<double> got = Attend(*kernels_, c, dtype);
      ASSERT_EQ(got.size(), want.size());
      double off = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        off =
            std::max(off, std::abs(got[i] - want[i]) / (1 + std::abs(want[i])));
      }
      EXPECT_LT(off, dtype == DType::kBF16 ? 0.03 : 0.004)
          << c.T << " queries, " << c.S << " keys, " << DTypeName(dtype);
      // A second run gives the same bits.
      EXPECT_EQ(Attend(*kernels_, c, dtype), got);
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
