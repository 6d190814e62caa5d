#include "nn/autograd/create.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/status_error.h"
#include "gtest/gtest.h"
#include "nn/autograd/var_math.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

class CreateTest : public testing::Test {
 protected:
  template <typename Run>
  std::string ErrorOf(Run run) {
    return std::string(base::Try(run).message());
  }

  std::unique_ptr<Kernels> kernels_ = CreateCpuKernels({});
  Context ctx_{*kernels_};
};

using Numbers = std::vector<double>;

TEST_F(CreateTest, Constants) {
  EXPECT_EQ(ValuesOf(Zeros(ctx_, {2})), (Numbers{0, 0}));
  EXPECT_EQ(ValuesOf(Ones(ctx_, {2}, DType::kI64)), (Numbers{1, 1}));
  const Var x = Full(ctx_, {1, 2}, 0.5, DType::kBF16);
  EXPECT_EQ(ValuesOf(x), (Numbers{0.5, 0.5}));
  EXPECT_EQ(OnesLike(x).dtype(), DType::kBF16);
  EXPECT_EQ(ValuesOf(FullLike(x, 3)), (Numbers{3, 3}));
  EXPECT_EQ(ZerosLike(x).shape(), (Shape{1, 2}));
}

TEST_F(CreateTest, Sequences) {
  EXPECT_EQ(ValuesOf(Arange(ctx_, 0, 4)), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(ValuesOf(Arange(ctx_, 3, -2, -2, DType::kI64)),
            (Numbers{3, 1, -1}));
  EXPECT_EQ(ValuesOf(Arange(ctx_, 1, 1)), Numbers());
  EXPECT_EQ(ValuesOf(Arange(ctx_, 2, 1)), Numbers());
  EXPECT_EQ(ValuesOf(Linspace(ctx_, -1, 1, 5)), (Numbers{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(ValuesOf(Linspace(ctx_, 7, 8, 1)), (Numbers{7}));
  EXPECT_EQ(ValuesOf(Linspace(ctx_, 0, 0.1, 3)).back(), 0.1f);
  EXPECT_EQ(ValuesOf(Tril(Ones(ctx_, {2, 2}))), (Numbers{1, 0, 1, 1}));
}

TEST_F(CreateTest, RandomNumbersHaveTheirDistribution) {
  ctx_.set_random({/*seed=*/1});
  const Numbers uniform = ValuesOf(Rand(ctx_, {10000}));
  EXPECT_GE(*std::min_element(uniform.begin(), uniform.end()), 0);
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 1);
  EXPECT_NEAR(Mean(Rand(ctx_, {10000})).item(), 0.5, 0.02);
  const Var normal = Randn(ctx_, {10000});
  EXPECT_NEAR(Mean(normal).item(), 0, 0.05);
  EXPECT_NEAR(Variance(normal).item(), 1, 0.05);
  const Numbers integers = ValuesOf(Randint(ctx_, -2, 3, {1000}));
  EXPECT_EQ(std::set<double>(integers.begin(), integers.end()),
            (std::set<double>{-2, -1, 0, 1, 2}));
  Numbers order = ValuesOf(Randperm(ctx_, 100)), sorted(100);
  std::iota(sorted.begin(), sorted.end(), 0);
  EXPECT_NE(order, sorted);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, sorted);
}

// Rounding up would give 1.
TEST_F(CreateTest, UniformNumbersAreBelow1InEveryDtype) {
  ctx_.set_random({/*seed=*/1});
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Numbers values = ValuesOf(Rand(ctx_, {20000}, dtype));
    EXPECT_LT(*std::max_element(values.begin(), values.end()), 1);
  }
}

// The draws of a program with this position.
Numbers DrawsAt(Kernels& kernels, const StepPosition& position, int call,
                int steps) {
  Context ctx(kernels);
  ctx.set_random(position);
  for (int i = 0; i < steps; ++i) ctx.BeginStep();
  for (int i = 0; i < call; ++i) Rand(ctx, {3});
  return ValuesOf(Rand(ctx, {3}));
}

TEST_F(CreateTest, DrawsAreKeyedBySeedRankStepAndCall) {
  const StepPosition base{/*seed=*/1, /*step=*/5, /*sample=*/0, /*rank=*/0};
  const Numbers draws = DrawsAt(*kernels_, base, 0, 0);
  EXPECT_EQ(DrawsAt(*kernels_, base, 0, 0), draws);
  // Batches may differ in size: the sample does not count.
  EXPECT_EQ(DrawsAt(*kernels_, {1, 5, 64, 0}, 0, 0), draws);
  EXPECT_EQ(DrawsAt(*kernels_, {1, 3, 0, 0}, 0, /*steps=*/2), draws);
  EXPECT_NE(DrawsAt(*kernels_, {2, 5, 0, 0}, 0, 0), draws);
  EXPECT_NE(DrawsAt(*kernels_, {1, 6, 0, 0}, 0, 0), draws);
  EXPECT_NE(DrawsAt(*kernels_, {1, 5, 0, 1}, 0, 0), draws);
  EXPECT_NE(DrawsAt(*kernels_, base, /*call=*/1, 0), draws);
}

TEST_F(CreateTest, ARandomTensorOfAnotherHasItsShapeAndDtype) {
  ctx_.set_random({/*seed=*/1});
  const Var x = Zeros(ctx_, {2, 3}, DType::kF16);
  EXPECT_EQ(RandLike(x).shape(), x.shape());
  EXPECT_EQ(RandnLike(x).dtype(), DType::kF16);
}

TEST_F(CreateTest, Mistakes) {
  EXPECT_EQ(ErrorOf([&] { Rand(ctx_, {2}); }),
            "a layer draws random numbers, and the context has no position in "
            "the job to draw at: call Context::set_random()");
  EXPECT_EQ(ErrorOf([&] { Arange(ctx_, 0, 1, 0); }),
            "arange takes numbers and a step that is not 0, got 0, 1 and 0");
  EXPECT_EQ(ErrorOf([&] { Randint(ctx_, 3, 3, {2}); }),
            "randint takes low < high, got 3 and 3");
  EXPECT_EQ(ErrorOf([&] { Rand(ctx_, {2}, DType::kU8); }),
            "a layer draws random numbers, and the context has no position in "
            "the job to draw at: call Context::set_random()");
  EXPECT_EQ(ErrorOf([&] { Linspace(ctx_, 0, 1, -1); }),
            "linspace takes a count of numbers, got -1");
  ctx_.set_random({/*seed=*/1});
  EXPECT_EQ(ErrorOf([&] { Rand(ctx_, {2}, DType::kU8); }),
            "numbers are made in i64 and floating dtypes, not in u8; convert "
            "them afterwards");
  EXPECT_EQ(ErrorOf([&] { OneHot(Full(ctx_, {1}, 3, DType::kI64), 3); }),
            "one_hot: a label must be in [0, 3), not 3");
}

}  // namespace
}  // namespace troupe::nn
