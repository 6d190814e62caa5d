#include "data/synthetic/synthetic.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

std::vector<std::int64_t> UpTo(std::int64_t count) {
  std::vector<std::int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

SyntheticOptions Regression(std::int64_t count) {
  SyntheticOptions options;
  options.count = count;
  options.num_classes = 0;
  options.target_dim = 2;
  return options;
}

double MeanSquare(const nn::Tensor& tensor) {
  double sum = 0;
  for (float value : tensor.span<float>()) sum += double{value} * value;
  return sum / static_cast<double>(tensor.numel());
}

TEST(SyntheticTest, RegressionIsStandardNormal) {
  const auto dataset = MakeSyntheticDataset(Regression(4000), "train");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec(), RegressionSpec({10}, 2));
  const Filled all = FillFrom(**dataset, UpTo(4000));
  EXPECT_NEAR(MeanSquare(all.inputs), 1, 0.05);
  EXPECT_GT(MeanSquare(all.targets), 0.2);
  EXPECT_LT(MeanSquare(all.targets), 3);
}

TEST(SyntheticTest, TargetsAreLinearInTheInputsInEverySplit) {
  // With two inputs, the test split's first input is a combination of two of
  // the train split; its target must be the same combination of theirs.
  SyntheticOptions options = Regression(3);
  options.input_shape = {2};
  const auto train = *MakeSyntheticDataset(options, "train");
  const auto test = *MakeSyntheticDataset(options, "test");
  const Filled a = FillFrom(*train, {0, 1, 2});
  const Filled b = FillFrom(*test, {0});
  const float* x = a.inputs.data<float>();
  const float* y = a.targets.data<float>();
  const float* p = b.inputs.data<float>();
  // p = s * x0 + t * x1, by Cramer's rule.
  const float det = x[0] * x[3] - x[1] * x[2];
  const float s = (p[0] * x[3] - p[1] * x[2]) / det;
  const float t = (x[0] * p[1] - x[1] * p[0]) / det;
  for (int d = 0; d < 2; ++d) {
    EXPECT_NEAR(b.targets.data<float>()[d], s * y[d] + t * y[2 + d], 1e-3);
  }
}

TEST(SyntheticTest, ClassesAllOccur) {
  SyntheticOptions options;
  options.input_shape = {4, 4, 3};
  options.num_classes = 5;
  const auto dataset = MakeSyntheticDataset(options, "train");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec(), ClassificationSpec({4, 4, 3}, 5));
  std::vector<int> counts(5);
  for (std::int64_t label :
       ToVector<std::int64_t>(FillFrom(**dataset, UpTo(1024)).targets)) {
    ++counts[label];
  }
  for (int count : counts) EXPECT_GT(count, 20);
}

TEST(SyntheticTest, ASampleDoesNotDependOnTheCount) {
  const auto few = *MakeSyntheticDataset(Regression(5), "train");
  const auto many = *MakeSyntheticDataset(Regression(50), "train");
  const auto test = *MakeSyntheticDataset(Regression(50), "test");
  EXPECT_TRUE(
      BitEqual(FillFrom(*few, {4}).inputs, FillFrom(*many, {4}).inputs));
  EXPECT_TRUE(
      BitEqual(FillFrom(*few, {4}).targets, FillFrom(*many, {4}).targets));
  EXPECT_FALSE(
      BitEqual(FillFrom(*few, {4}).inputs, FillFrom(*test, {4}).inputs));
}

TEST(SyntheticTest, RefusesImpossibleSizes) {
  EXPECT_FALSE(MakeSyntheticDataset(Regression(0), "train").ok());
  SyntheticOptions options = Regression(10);
  options.target_dim = 0;
  EXPECT_FALSE(MakeSyntheticDataset(options, "train").ok());
  options = Regression(10);
  options.input_shape = {0};
  EXPECT_FALSE(MakeSyntheticDataset(options, "train").ok());
}

TEST(SyntheticTest, RefusesWhatFitsNoMemory) {
  EXPECT_EQ(MakeSyntheticDataset(Regression(INT64_MAX / 2), "train")
                .status()
                .message(),
            "synthetic data of 2.21361e+20 bytes (4611686018427387903 samples "
            "of [10], targets of 2) are more than the limit of 8589934592; "
            "make fewer or smaller samples");
  // One small sample, but the map to its classes has 64 * 2^40 numbers.
  SyntheticOptions options;
  options.count = 1;
  options.input_shape = {100};
  options.num_classes = std::int64_t{1} << 40;
  EXPECT_EQ(MakeSyntheticDataset(options, "train").status().code(),
            absl::StatusCode::kInvalidArgument);
  options = Regression(1);
  options.target_dim = INT64_MAX;
  EXPECT_FALSE(MakeSyntheticDataset(options, "train").ok());
  options = Regression(1);
  options.input_shape = {1 << 20, 1 << 20};  // 4 TiB
  EXPECT_FALSE(MakeSyntheticDataset(options, "train").ok());
}

}  // namespace
}  // namespace troupe::data
