#include "nn/kernels/cpu/row_slices.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn::cpu {
namespace {

using Rows = std::vector<std::int64_t>;

class RowSlicesTest : public testing::TestWithParam<DType> {
 protected:
  Tensor Make(std::int64_t rows, std::int64_t cols, double first) {
    std::vector<double> values(rows * cols);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = first + static_cast<double>(i % 128);
    }
    return MakeTensor({rows, cols}, GetParam(), values, cpu_.allocator());
  }

  CpuDevice cpu_{CpuKernelOptions()};
};

// y = a + b row by row; rows of y are half as long.
TEST_P(RowSlicesTest, EveryRowOnceInOrder) {
  for (std::int64_t rows : {1, 8, 9, 700, 5000}) {
    Tensor a = Make(rows, 6, 0), b = Make(rows, 6, 1), y = Make(rows, 3, 0);
    std::int64_t next = 0;
    const absl::Status status = ForEachRowSlice(
        cpu_, {rows, /*together=*/8}, {&a, &b}, {&y}, [&](const RowSlice& at) {
          EXPECT_EQ(at.first, next);
          EXPECT_EQ(at.first % 8, 0);
          next += at.rows;
          for (std::int64_t i = 0; i < at.rows * 3; ++i) {
            const std::int64_t from = i / 3 * 6 + i % 3;
            at.out[0][i] = at.in[0][from] + at.in[1][from];
          }
        });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(next, rows);
    const std::vector<double> left = ValuesOf(a), right = ValuesOf(b);
    const std::vector<double> sums = ValuesOf(y);
    for (std::int64_t i = 0; i < rows * 3; ++i) {
      const std::int64_t from = i / 3 * 6 + i % 3;
      ASSERT_EQ(sums[i], left[from] + right[from]) << i << " of " << rows;
    }
  }
}

TEST_P(RowSlicesTest, AResultMayLieOverAnOperand) {
  Tensor x = Make(3000, 5, 1);
  const std::vector<double> before = ValuesOf(x);
  ASSERT_TRUE(
      ForEachRowSlice(cpu_, {3000}, {&x}, {&x}, [&](const RowSlice& at) {
        for (std::int64_t i = 0; i < at.rows * 5; ++i) {
          at.out[0][i] = at.in[0][i] * 2;
        }
      }).ok());
  const std::vector<double> after = ValuesOf(x);
  for (std::size_t i = 0; i < after.size(); ++i) {
    ASSERT_EQ(after[i], before[i] * 2) << i;
  }
}

TEST_P(RowSlicesTest, UndefinedOperandsAreNullAndNoRowsAreNoCall) {
  Tensor none, x = Make(4, 2, 0), empty = Make(0, 2, 0);
  int calls = 0;
  const auto body = [&](const RowSlice& at) {
    ++calls;
    EXPECT_NE(at.in[0], nullptr);
    EXPECT_EQ(at.in[1], nullptr);
    EXPECT_EQ(at.out[0], nullptr);
  };
  EXPECT_TRUE(ForEachRowSlice(cpu_, {4}, {&x, &none}, {&none}, body).ok());
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(ForEachRowSlice(cpu_, {0}, {&empty, &none}, {&none}, body).ok());
  EXPECT_EQ(calls, 1);
}

TEST_P(RowSlicesTest, LongRowsComeTogetherAsAsked) {
  Tensor x = Make(20, 5000, 0);
  Rows seen;
  ASSERT_TRUE(
      ForEachRowSlice(cpu_, {20, /*together=*/8}, {&x}, {},
                      [&](const RowSlice& at) { seen.push_back(at.rows); })
          .ok());
  EXPECT_EQ(seen, GetParam() == DType::kF32 ? Rows{20} : (Rows{8, 8, 4}));
}

INSTANTIATE_TEST_SUITE_P(DTypes, RowSlicesTest,
                         testing::Values(DType::kF32, DType::kBF16,
                                         DType::kF16),
                         [](const auto& info) {
                           return std::string(DTypeName(info.param));
                         });

}  // namespace
}  // namespace troupe::nn::cpu
