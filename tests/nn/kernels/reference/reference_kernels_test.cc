// Small cases with answers worked out by hand. tests/nn/ops and
// tests/nn/toy_networks_test.cc compare the same kernels with PyTorch.

#include "nn/kernels/reference/reference_kernels.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

using Values = std::vector<double>;

class ReferenceKernelsTest : public ::testing::TestWithParam<DType> {
 protected:
  Tensor Make(const Shape& shape, const Values& values) {
    return MakeTensor(shape, GetParam(), values, kernels_->allocator());
  }
  Tensor Zeros(const Shape& shape) {
    return Tensor::Zeros(shape, GetParam(), kernels_->allocator());
  }
  Tensor Stats() {
    return Tensor::Zeros({3}, DType::kF64, kernels_->allocator());
  }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
};

TEST_P(ReferenceKernelsTest, Linear) {
  Tensor x = Make({2, 2}, {1, 2, 3, 4});
  Tensor w = Make({3, 2}, {1, 0, 0, 1, 1, 1});
  Tensor b = Make({3}, {0.5, 0, -1});
  Tensor y = Zeros({2, 3});
  ASSERT_TRUE(kernels_->LinearForward(x, w, b, y).ok());
  EXPECT_EQ(ValuesOf(y), (Values{1.5, 2, 2, 3.5, 4, 6}));

  Tensor dy = Make({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor dx = Zeros({2, 2});
  ASSERT_TRUE(kernels_->LinearBackwardInput(dy, w, dx).ok());
  EXPECT_EQ(ValuesOf(dx), (Values{4, 5, 10, 11}));

  Tensor dw = Make({3, 2}, {1, 1, 1, 1, 1, 1});
  Tensor db = Make({3}, {1, 1, 1});
  ASSERT_TRUE(kernels_->LinearBackwardWeight(x, dy, true, dw, db).ok());
  EXPECT_EQ(ValuesOf(dw), (Values{14, 19, 18, 25, 22, 31}));
  EXPECT_EQ(ValuesOf(db), (Values{6, 8, 10}));
  ASSERT_TRUE(kernels_->LinearBackwardWeight(x, dy, false, dw, db).ok());
  EXPECT_EQ(ValuesOf(db), (Values{5, 7, 9}));
}

// The gradient passes where the value is NaN, as in PyTorch.
TEST_P(ReferenceKernelsTest, ReluBackwardPassesAtNan) {
  const Tensor y = Make({6}, {std::nan(""), 1, 0, -0.0, -2, INFINITY});
  const Tensor dy = Make({6}, {2, 3, 4, 5, 6, 7});
  Tensor dx = Zeros({6});
  ASSERT_TRUE(kernels_->ReluBackward(y, dy, dx).ok());
  EXPECT_EQ(ValuesOf(dx), (Values{2, 3, 0, 0, 0, 7}));
}

TEST_P(ReferenceKernelsTest, Conv2dIsACorrelation) {
  const Window2d window{2, 2};
  Tensor x = Make({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  Tensor w = Make({1, 1, 2, 2}, {1, 2, 3, 4});
  Tensor y = Zeros({1, 1, 2, 1});
  ASSERT_TRUE(kernels_->Conv2dForward(window, x, w, Tensor(), y).ok());
  EXPECT_EQ(ValuesOf(y), (Values{37, 47}));

  Tensor dy = Make({1, 1, 2, 1}, {1, 10});
  Tensor dx = Zeros({1, 2, 3, 1});
  ASSERT_TRUE(kernels_->Conv2dBackwardInput(window, dy, w, dx).ok());
  EXPECT_EQ(ValuesOf(dx), (Values{1, 12, 20, 3, 34, 40}));

  Tensor dw = Zeros({1, 1, 2, 2});
  Tensor db = Zeros({1});
  ASSERT_TRUE(
      kernels_->Conv2dBackwardWeight(window, x, dy, false, dw, db).ok());
  EXPECT_EQ(ValuesOf(dw), (Values{21, 32, 54, 65}));
  EXPECT_EQ(ValuesOf(db), (Values{11}));
}

TEST_P(ReferenceKernelsTest, MaxPoolTakesTheFirstOfEqualsAndNan) {
  const Window2d window{2, 2, 2, 2};
  const double nan = std::nan("");
  Tensor x = Make({1, 2, 4, 1}, {5, 5, 1, nan, 5, 4, 2, 9});
  Tensor y = Zeros({1, 1, 2, 1});
  Tensor argmax = Tensor::Zeros({1, 1, 2, 1}, DType::kI32,  //
                                kernels_->allocator());
  ASSERT_TRUE(kernels_->MaxPool2dForward(window, x, y, argmax).ok());
  EXPECT_EQ(ValuesOf(argmax), (Values{0, 3}));
  EXPECT_EQ(ValuesOf(y)[0], 5);
  EXPECT_TRUE(std::isnan(ValuesOf(y)[1]));

  Tensor dx = Make({1, 2, 4, 1}, Values(8, nan));
  Tensor dy = Make({1, 1, 2, 1}, {2, 3});
  ASSERT_TRUE(kernels_->MaxPool2dBackward(window, dy, argmax, dx).ok());
  EXPECT_EQ(ValuesOf(dx), (Values{2, 0, 0, 3, 0, 0, 0, 0}));
}

TEST_P(ReferenceKernelsTest, AvgPoolCountsPadding) {
  const Window2d window{2, 2, 2, 2, 1, 1};
  Tensor x = Make({1, 2, 2, 1}, {4, 8, 12, 16});
  Tensor y = Zeros({1, 2, 2, 1});
  ASSERT_TRUE(
      kernels_->AvgPool2dForward(window, AvgDivisor::kPaddedImage, x, y).ok());
  EXPECT_EQ(ValuesOf(y), (Values{1, 2, 3, 4}));
}

TEST_P(ReferenceKernelsTest, CrossEntropySumsCountedRows) {
  Tensor logits = Make({3, 2}, {0, 0, 9, 9, 0, 0});
  Tensor targets = Tensor::Of<std::int64_t>({3}, {1, -100, 0},  //
                                            kernels_->allocator());
  Tensor stats = Stats();
  Tensor dlogits = Zeros({3, 2});
  ASSERT_TRUE(
      kernels_->SoftmaxCrossEntropy(logits, targets, -100, stats, dlogits)
          .ok());
  EXPECT_NEAR(ValuesOf(stats)[0], 2 * std::log(2.0), 1e-15);
  EXPECT_EQ(ValuesOf(stats)[1], 2);
  EXPECT_EQ(ValuesOf(stats)[2], 1);
  EXPECT_EQ(ValuesOf(dlogits), (Values{0.5, -0.5, 0, 0, -0.5, 0.5}));
}

TEST_P(ReferenceKernelsTest, MeanSquaredErrorSums) {
  Tensor stats = Stats();
  Tensor none;
  ASSERT_TRUE(kernels_
                  ->PairLoss({PairLossFunction::kSquaredError},
                             Make({2}, {1, 2}), Make({2}, {3, -1}), stats, none)
                  .ok());
  EXPECT_EQ(ValuesOf(stats), (Values{13, 2, 0}));
}

TEST_P(ReferenceKernelsTest, SgdWithNesterovMomentum) {
  SgdRule rule;
  rule.momentum = 0.5;
  rule.nesterov = true;
  StepScalars values;
  values.lr = 0.5;
  values.loss_count = 2;
  const Tensor scalars = HostScalars(values, kernels_->allocator());
  Tensor p = Make({1}, {1});
  Tensor buf = Make({1}, {std::nan("")});
  Tensor g = Make({1}, {4});
  ASSERT_TRUE(kernels_->SgdUpdate(rule, scalars, g, p, buf).ok());
  EXPECT_EQ(ValuesOf(buf), (Values{2}));
  EXPECT_EQ(ValuesOf(p), (Values{-0.5}));  // 1 - 0.5 (2 + 0.5 * 2)
  ScalarsIn(scalars).step = 1;
  ASSERT_TRUE(kernels_->SgdUpdate(rule, scalars, g, p, buf).ok());
  EXPECT_EQ(ValuesOf(buf), (Values{3}));
  EXPECT_EQ(ValuesOf(p), (Values{-2.25}));  // -0.5 - 0.5 (2 + 0.5 * 3)
}

TEST_P(ReferenceKernelsTest, SumsAreExactBeforeTheOneRounding) {
  // In f16, 2048 + 1 is 2048: adding step by step would stay there.
  Values ones(512, 1.0);
  ones[0] = 2048;
  Tensor y = Zeros({1, 1});
  ASSERT_TRUE(kernels_
                  ->LinearForward(Make({1, 512}, ones),
                                  Make({1, 512}, Values(512, 1.0)), Tensor(), y)
                  .ok());
  EXPECT_EQ(ValuesOf(y), ValuesOf(Make({1, 1}, {2048 + 511})));
}

INSTANTIATE_TEST_SUITE_P(DTypes, ReferenceKernelsTest,
                         ::testing::Values(DType::kF32, DType::kF64,
                                           DType::kBF16, DType::kF16),
                         [](const auto& info) {
                           return std::string(DTypeName(info.param));
                         });

TEST(ReferenceKernels, CopyConvertsBetweenAllFloatingTypes) {
  auto kernels = CreateReferenceKernels();
  const Values values = {0, 1.5, -2, 1e3};
  const DType types[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16};
  for (DType from : types) {
    for (DType to : types) {
      Tensor x = MakeTensor({4}, from, values, kernels->allocator());
      Tensor y = Tensor::Zeros({4}, to, kernels->allocator());
      ASSERT_TRUE(kernels->Copy(x, y).ok());
      EXPECT_EQ(ValuesOf(y), values);
    }
  }
  EXPECT_EQ(kernels->Describe(), "reference:0, plain loops in f64, 1 thread");
  EXPECT_EQ(kernels->allocator().device(), kernels->device());
}

}  // namespace
}  // namespace troupe::nn
