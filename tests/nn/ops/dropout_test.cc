// The mask depends on the sample and the module, not on the micro-batch.

#include "nn/ops/dropout.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/dropout.h"
#include "nn/modules/localise.h"
#include "nn/modules/sequential.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

class DropoutTest : public testing::Test {
 protected:
  Tensor Ones(const Shape& shape) {
    Tensor ones = Tensor::Empty(shape, DType::kF32, kernels_->allocator());
    EXPECT_TRUE(kernels_->Fill(1.0, ones).ok());
    return ones;
  }

  // Runs rows [begin, end) of a global batch of ones through two dropouts, or
  // a rank's piece of them.
  std::vector<double> Run(const StepPosition& at, std::int64_t rows,
                          const AxisPlace& place = {"tp"},
                          std::int64_t columns = 50) {
    Sequential model;
    model.Append<Dropout>(0.25).set_parallel(Dropout::kFeatures);
    model.Append<Dropout>(0.5).set_parallel(Dropout::kFeatures);
    EXPECT_TRUE(LocaliseModel(model, {place}).ok());
    Context ctx(*kernels_);
    ctx.set_random(at);
    const Tensor y = model(ctx, Ones({rows, 3, columns}));
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return ValuesOf(y);
  }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
};

TEST_F(DropoutTest, AnyCutOfTheGlobalBatchDropsTheSame) {
  const std::vector<double> whole = Run({/*seed=*/1, /*step=*/2, 0}, 8);
  for (std::int64_t micro : {1, 2, 4}) {
    std::vector<double> parts;
    for (std::int64_t begin = 0; begin < 8; begin += micro) {
      for (double y : Run({1, 2, begin}, micro)) parts.push_back(y);
    }
    EXPECT_EQ(parts, whole) << "micro-batches of " << micro;
  }
}

// Each of `pieces` ranks has as many columns of x [N, T, D].
TEST_F(DropoutTest, PiecesOfTheLastAxisDropWhatTheWholeDrops) {
  const std::vector<double> whole = Run({/*seed=*/1, /*step=*/2, 3}, 2);
  for (const int pieces : {2, 5, 10}) {
    const std::int64_t columns = 50 / pieces;
    std::vector<double> joined(whole.size());
    for (int piece = 0; piece < pieces; ++piece) {
      const std::vector<double> y =
          Run({1, 2, 3}, 2, {"tp", piece, pieces}, columns);
      for (std::size_t i = 0; i < y.size(); ++i) {
        joined[i / columns * 50 + piece * columns + i % columns] = y[i];
      }
    }
    EXPECT_EQ(joined, whole) << pieces << " pieces";
  }
}

TEST_F(DropoutTest, APartHasWholeRows) {
  Context ctx(*kernels_);
  ctx.set_random({1, 2, 3});
  const Tensor x = Ones({4});
  const ops::PartOfSample part = ops::PieceOfLastAxis(x, 0, 2);
  EXPECT_FALSE(ops::DropoutOfPart(ctx, x, 0.5, part).defined());
  EXPECT_EQ(ctx.status().message(),
            "dropout of a part takes samples of whole rows, got f32[4] in rows "
            "of 4");
}

TEST_F(DropoutTest, SeedStepAndSampleEachChangeTheMask) {
  const std::vector<double> first = Run({1, 2, 3}, 1);
  EXPECT_EQ(Run({1, 2, 3}, 1), first);
  EXPECT_NE(Run({2, 2, 3}, 1), first);
  EXPECT_NE(Run({1, 3, 3}, 1), first);
  EXPECT_NE(Run({1, 2, 4}, 1), first);
}

TEST_F(DropoutTest, DropsAsOftenAsAskedAndKeepsTheMean) {
  const std::vector<double> y = Run({1, 2, 0}, 100);
  double kept = 0, sum = 0;
  for (double value : y) {
    kept += value != 0;
    sum += value;
  }
  const double n = static_cast<double>(y.size());
  EXPECT_NEAR(kept / n, 0.75 * 0.5, 0.02);
  EXPECT_NEAR(sum / n, 1, 0.05);
}

TEST_F(DropoutTest, TheSameOpTwiceInAModuleDropsTwice) {
  Context ctx(*kernels_);
  ctx.set_random({1, 2, 3});
  const Tensor x = Ones({1, 100});
  EXPECT_NE(ValuesOf(ops::Dropout(ctx, x, 0.5)),
            ValuesOf(ops::Dropout(ctx, x, 0.5)));
}

TEST_F(DropoutTest, EvaluationAndZeroChangeNothingAndOneDropsAll) {
  const Tensor x = Ones({2, 5});
  Context ctx(*kernels_);  // no position: nothing is drawn
  EXPECT_EQ(ValuesOf(ops::Dropout(ctx, x, 0)), ValuesOf(x));
  EXPECT_EQ(ValuesOf(ops::Dropout(ctx, x, 1)), std::vector<double>(10, 0.0));
  ctx.set_training(false);
  EXPECT_EQ(ValuesOf(ops::Dropout(ctx, x, 0.9)), ValuesOf(x));
}

TEST_F(DropoutTest, WithoutAPositionInTheJobItFails) {
  Context ctx(*kernels_);
  EXPECT_FALSE(ops::Dropout(ctx, Ones({2, 5}), 0.5).defined());
  EXPECT_EQ(ctx.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace troupe::nn
