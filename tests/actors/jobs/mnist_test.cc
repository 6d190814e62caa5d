// Trains on real digits: the first 8,000 of MNIST's test set; tests on the last
// 2,000. Skips itself if the data is missing.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.h"
#include "data/registry.h"
#include "gtest/gtest.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"
#include "tests/data/test_util.h"

namespace troupe::actors {
namespace {

// Returns the job of examples/mnist/mnist.toml: LeNet, 64 samples per step over
// all ranks.
JobSpec MnistJob(const std::string& folder, int dp, int epochs) {
  data::DatasetOptions options;
  options.kind = "mnist";
  options.path = folder;
  const data::DataSplits splits = *data::OpenDataset(options);
  JobSpec spec = TinyCnnJob(dp, 0);
  spec.train = splits.train;
  spec.test = splits.test;
  spec.seed = 0;
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.01;
    sgd.momentum = 0.9;
    sgd.weight_decay = 1e-3;
    return std::make_unique<nn::Sgd>(sgd);
  };
  spec.plan.global_batch_size = 64;
  spec.steps = epochs * (splits.train->size() / 64);
  return spec;
}

class MnistTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = data::FindRealData("mnist");
    if (folder_.empty()) {
      GTEST_SKIP() << "no MNIST here: set TROUPE_DATA to the folder above "
                      "mnist";
    }
  }
  Reports Run(int dp, int epochs) {
    return ReportsOf(MnistJob(folder_, dp, epochs));
  }
  std::string folder_;
};

TEST_F(MnistTest, TwoRanksLearnIt) {
  const Reports reports = Run(/*dp=*/2, /*epochs=*/12);
  ASSERT_EQ(reports.evaluations.size(), 1u);
  EXPECT_EQ(reports.evaluations[0].count, 2000);
  EXPECT_GE(reports.evaluations[0].accuracy, 0.975);
}

TEST_F(MnistTest, OneRankAndTwoAgree) {
  const Reports one = Run(/*dp=*/1, /*epochs=*/12);
  const Reports two = Run(/*dp=*/2, /*epochs=*/12);
  for (int step = 0; step < 20; ++step) {
    const double a = one.steps[step].loss, b = two.steps[step].loss;
    EXPECT_LE(std::abs(a - b), 1e-4 * a) << "step " << step + 1;
  }
  // The accuracies may differ, as the sums of the runs are rounded differently:
  // by half a point, which is 10 of the 2,000 samples. Whole samples are
  // compared, so that rounding does not matter.
  const double apart =
      one.evaluations[0].accuracy - two.evaluations[0].accuracy;
  EXPECT_LE(std::lround(std::abs(apart) * 2000), 10);
}

TEST_F(MnistTest, TwoRanksTwiceAreBitEqual) {
  const Reports first = Run(/*dp=*/2, /*epochs=*/2);
  const Reports second = Run(/*dp=*/2, /*epochs=*/2);
  EXPECT_EQ(first.losses(), second.losses());
  EXPECT_EQ(first.evaluations[0].loss, second.evaluations[0].loss);
}

}  // namespace
}  // namespace troupe::actors
