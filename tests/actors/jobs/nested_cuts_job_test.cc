// Stages that begin inside a Sequential of the model have the bits of one rank,
// and their checkpoints load under any other cuts.

#include <memory>
#include <string>
#include <vector>

#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/dropout.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/pool2d.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using Cuts = std::vector<pipeline::Cut>;

// A model in the style of torchvision; the path of a dropout layer determines
// its random numbers.
class Net : public nn::Sequential {
 public:
  Net() {
    auto& features = Add<nn::Sequential>("features");
    features.Append<nn::Conv2d>(1, 4, nn::Window2d{5, 5},
                                nn::Conv2d::Options());
    features.Append<nn::ReLU>();
    features.Append<nn::MaxPool2d>(2);
    features.Append<nn::Flatten>();
    auto& classifier = Add<nn::Sequential>("classifier");
    classifier.Append<nn::Linear>(4 * 12 * 12, 24);
    classifier.Append<nn::Dropout>(0.5);
    classifier.Append<nn::ReLU>();
    classifier.Append<nn::Linear>(24, 10);
  }
};

JobSpec NetJob(const Cuts& cuts, std::int64_t steps) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, steps);
  spec.model = [] { return std::make_unique<Net>(); };
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, static_cast<int>(cuts.size()) + 1);
  spec.plan.cuts = cuts;
  spec.plan.micro_batch_size = 8;
  return spec;
}

TEST(NestedCutsJobTest, StagesEqualOneRankToTheBit) {
  const std::vector<double> one = ReportsOf(NetJob({}, 8)).losses();
  ASSERT_EQ(one.size(), 8u);
  for (const Cuts& cuts : std::vector<Cuts>{
           {1}, {"classifier.1"}, {"features.2", "classifier.2"}}) {
    EXPECT_EQ(ReportsOf(NetJob(cuts, 8)).losses(), one) << cuts[0].ToString();
  }
}

TEST(NestedCutsJobTest, ThePlanHasThePlaceHoweverItWasWritten) {
  for (const pipeline::Cut& cut :
       {pipeline::Cut(1), pipeline::Cut("classifier.0")}) {
    EXPECT_EQ(ReportsOf(NetJob({cut}, 1)).info.plan.cuts,
              std::vector<std::string>{"classifier"});
  }
}

TEST(NestedCutsJobTest, CheckpointsLoadUnderOtherCuts) {
  const std::string folder = FreshFolder("checkpoints");
  const std::vector<double> whole = ReportsOf(NetJob({}, 9)).losses();
  std::vector<double> parts;
  std::int64_t steps = 0;
  for (const Cuts& cuts : std::vector<Cuts>{
           {"classifier.1"}, {"features.3", "classifier.3"}, {}}) {
    JobSpec spec = NetJob(cuts, steps += 3);
    spec.checkpoint.dir = folder;
    spec.checkpoint.resume = true;
    for (double loss : ReportsOf(spec).losses()) parts.push_back(loss);
  }
  EXPECT_EQ(parts, whole);
}

}  // namespace
}  // namespace troupe::actors
