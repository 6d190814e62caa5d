// Compares the small matrix kernels with plain loops in f64, for pairs of
// dtypes and under every schedule: on the emulation, and on a GPU if there is
// one (matrix_kernels_gpu_test).

#include "nn/kernels/cuda/libraries/matrix_kernels.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/tensor/tensor.h"
#include "tests/base/cuda/emulated/test_device.h"
#include "tests/nn/kernels/cuda/test_kernels.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn::cuda {
namespace {

using emulated_cuda_test::WaitFor;

struct DTypes {
  DType from, to;
};

class MatrixKernelsTest : public testing::TestWithParam<DTypes> {
 protected:
  void SetUp() override {
    const std::string why_not = emulated_cuda_test::WhyNoDevice();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    CachingAllocator::Options options;
    options.source = SharedMemory();
    memory_ = std::make_unique<CachingAllocator>(options);
  }

  Tensor Draws(const std::string& name, std::int64_t count, DType dtype) {
    return MakeTensor({count}, dtype, NormalDraws(name, count), *memory_);
  }
  static ConstElements Read(const Tensor& t) {
    return {t.dtype(), t.device_data()};
  }
  static Elements Written(const Tensor& t) {
    return {t.dtype(), t.device_data()};
  }
  // Returns one unit in the last place, plus the rounding of sums for f32.
  static double Tolerance() {
    switch (GetParam().to) {
      case DType::kBF16:
        return 0x1p-7;
      case DType::kF16:
        return 0x1p-10;
      default:
        return 2e-6;
    }
  }
  // Expects run(y) on a copy y of `begin` to give values near `want`, with the
  // same bits under every schedule.
  template <typename Run>
  void Expect(const std::string& what, const Tensor& begin,
              const std::vector<double>& want, Run run) {
    const auto values = [&] {
      Tensor y =
          MakeTensor(begin.shape(), begin.dtype(), ValuesOf(begin), *memory_);
      const absl::Status status = WaitFor(run(y));
      EXPECT_TRUE(status.ok()) << what << ": " << status;
      return ValuesOf(y);
    };
    EXPECT_TRUE(Near(values(), want, Tolerance())) << what;
    EXPECT_EQ(emulated_cuda_test::CompareRuns(values), "") << what;
  }

  std::unique_ptr<CachingAllocator> memory_;
};

constexpr MatrixShape kShapes[] = {{1, 1},   {7, 5},     {33, 64},
                                   {256, 8}, {1000, 37}, {600, 24}};

TEST_P(MatrixKernelsTest, ColumnSums) {
  for (const MatrixShape shape : kShapes) {
    const Tensor x = Draws("x", shape.rows * shape.cols, GetParam().from);
    const Tensor before = Draws("before", shape.cols, GetParam().to);
    const std::vector<double> values = ValuesOf(x);
    for (bool accumulate : {false, true}) {
      std::vector<double> want = ValuesOf(before);
      if (!accumulate) want.assign(want.size(), 0);
      for (std::size_t i = 0; i < values.size(); ++i) {
        want[i % want.size()] += values[i];
      }
      Expect(absl::StrCat(shape.rows, "x", shape.cols), before, want,
             [&](const Tensor& y) {
               const StoragePtr scratch =
                   *memory_->Allocate(ColumnSumsScratchBytes(shape));
               return ColumnSums(shape, Read(x), accumulate, Written(y),
                                 scratch->data(), nullptr);
             });
    }
  }
}

TEST_P(MatrixKernelsTest, SumsOfNoRowsAreZeros) {
  const Tensor before = Draws("before", 9, GetParam().to);
  const ConstElements nothing{GetParam().from, nullptr};
  Expect(
      "overwritten", before, std::vector<double>(9, 0.0), [&](const Tensor& y) {
        return ColumnSums({0, 9}, nothing, false, Written(y), nullptr, nullptr);
      });
  Expect("added", before, ValuesOf(before), [&](const Tensor& y) {
    return ColumnSums({0, 9}, nothing, true, Written(y), nullptr, nullptr);
  });
}

TEST_P(MatrixKernelsTest, AddRowVector) {
  for (const MatrixShape shape : kShapes) {
    const Tensor v = Draws("v", shape.cols, GetParam().from);
    const Tensor before =
        Draws("before", shape.rows * shape.cols, GetParam().to);
    std::vector<double> want = ValuesOf(before);
    const std::vector<double> added = ValuesOf(v);
    for (std::size_t i = 0; i < want.size(); ++i) {
      want[i] += added[i % added.size()];
    }
    Expect(absl::StrCat(shape.rows, "x", shape.cols), before, want,
           [&](const Tensor& y) {
             return AddRowVector(shape, Read(v), Written(y), nullptr);
           });
  }
}

TEST_P(MatrixKernelsTest, TransposeEach) {
  const std::int64_t batch = 3;
  for (const MatrixShape shape : kShapes) {
    const std::int64_t count = shape.rows * shape.cols;
    const Tensor x = Draws("x", batch * count, GetParam().from);
    const Tensor before = Draws("before", batch * count, GetParam().to);
    const std::vector<double> values = ValuesOf(x);
    for (bool accumulate : {false, true}) {
      std::vector<double> want = ValuesOf(before);
      if (!accumulate) want.assign(want.size(), 0);
      for (std::int64_t i = 0; i < batch * count; ++i) {
        const std::int64_t row = i % count / shape.cols, col = i % shape.cols;
        want[i / count * count + col * shape.rows + row] += values[i];
      }
      Expect(absl::StrCat(shape.rows, "x", shape.cols), before, want,
             [&](const Tensor& y) {
               return TransposeEach(batch, shape, Read(x), accumulate,
                                    Written(y), nullptr);
             });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, MatrixKernelsTest,
                         testing::Values(DTypes{DType::kF32, DType::kF32},
                                         DTypes{DType::kBF16, DType::kBF16},
                                         DTypes{DType::kBF16, DType::kF32},
                                         DTypes{DType::kF32, DType::kBF16},
                                         DTypes{DType::kF16, DType::kF16},
                                         DTypes{DType::kF16, DType::kBF16}),
                         [](const testing::TestParamInfo<DTypes>& info) {
                           return absl::StrCat(DTypeName(info.param.from),
                                               "_to_",
                                               DTypeName(info.param.to));
                         });

}  // namespace
}  // namespace troupe::nn::cuda
