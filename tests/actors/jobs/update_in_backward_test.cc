// One rank with one micro-batch updates large weights of linear layers while
// their gradients are computed, without ever holding a whole gradient. The bits
// are the same.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"
#include "tools/profile/op_clock.h"

namespace troupe::actors {
namespace {

// Returns a job with two weights that exceed a core's cache, and a small one.
JobSpec MlpJob(int dp, nn::DType dtype) {
  JobSpec spec = TinyCnnJob(dp, /*steps=*/4);
  spec.test = nullptr;
  spec.dtype = dtype;
  nn::ModelOptions options;
  options.dtype = dtype;
  spec.model = [options] { return nn::MakeMlp({784, 400, 400, 10}, options); };
  return spec;
}

struct Outcome {
  std::vector<double> losses;
  std::int64_t parts = 0;  // number of partial gradients
};

Outcome OutcomeOf(JobSpec spec) {
  tools::OpClock clock;
  clock.Attach(spec);
  clock.Start();
  const Reports reports = ReportsOf(spec);
  clock.Stop();
  Outcome outcome;
  outcome.losses = reports.losses();
  for (const tools::OpClock::Time& op : clock.times()) {
    if (op.name == "LinearBackwardWeightRows") outcome.parts = op.calls;
  }
  return outcome;
}

template <typename Optimizer, typename Options>
OptimizerFactory Factory(const Options& options) {
  return [options] { return std::make_unique<Optimizer>(options); };
}

std::vector<OptimizerFactory> ElementwiseOptimizers() {
  nn::SgdOptions sgd;
  sgd.lr = 0.05;
  sgd.momentum = 0.9;
  sgd.common.groups = {{"*.bias", /*lr_factor=*/2, /*weight_decay=*/0}};
  sgd.common.ema_decay = 0.5;
  nn::AdamOptions adam;
  adam.weight_decay = 0.1;
  adam.common.clip_grad_value = 0.01;
  return {Factory<nn::Sgd>(sgd), Factory<nn::Adam>(adam)};
}

TEST(UpdateInBackwardTest, HasTheBitsOfAnUpdateBehindIt) {
  for (nn::DType dtype : {nn::DType::kF32, nn::DType::kBF16}) {
    for (const OptimizerFactory& optimizer : ElementwiseOptimizers()) {
      JobSpec spec = MlpJob(/*dp=*/1, dtype);
      spec.optimizer = optimizer;
      const Outcome fused = OutcomeOf(spec);
      spec.plan.fuse_updates = false;
      const Outcome apart = OutcomeOf(spec);
      EXPECT_EQ(fused.losses, apart.losses) << nn::DTypeName(dtype);
      EXPECT_EQ(apart.parts, 0);
      // bf16 lacks these kernels on CPUs with tiles or without pair products.
      if (dtype == nn::DType::kF32) {
        EXPECT_GT(fused.parts, 4 * 2);
      }
    }
  }
}

// Each of these features needs whole gradients.
TEST(UpdateInBackwardTest, IsForGradientsThatNobodyElseNeeds) {
  JobSpec spec = MlpJob(/*dp=*/2, nn::DType::kF32);
  EXPECT_EQ(OutcomeOf(spec).parts, 0) << "they are added up over replicas";

  spec = MlpJob(/*dp=*/1, nn::DType::kF32);
  spec.plan.micro_batch_size = 8;
  EXPECT_EQ(OutcomeOf(spec).parts, 0) << "several micro-batches add to them";

  spec = MlpJob(/*dp=*/1, nn::DType::kF32);
  nn::SgdOptions clipped;
  clipped.common.clip_grad_norm = 1;
  spec.optimizer = Factory<nn::Sgd>(clipped);
  EXPECT_EQ(OutcomeOf(spec).parts, 0) << "their norm comes first";

  spec = MlpJob(/*dp=*/1, nn::DType::kF32);
  spec.optimizer = Factory<nn::Lamb>(nn::LambOptions());
  EXPECT_EQ(OutcomeOf(spec).parts, 0) << "so do norms of parameters";
}

}  // namespace
}  // namespace troupe::actors
