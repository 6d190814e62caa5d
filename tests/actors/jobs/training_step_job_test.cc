// Jobs with a training step of their own (JobSpec::training_step).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "nn/autograd/var_math.h"
#include "nn/modules/linear.h"
#include "nn/modules/net.h"
#include "nn/ops/loss.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using nn::Var;

// Returns the job with its loss as a training step; evaluations have the step,
// too, unless `keeps_loss`.
JobSpec WithStep(JobSpec spec, bool keeps_loss = false) {
  spec.training_step = [loss = spec.loss](nn::Context& ctx, nn::Module& model,
                                          const data::Batch& batch) {
    return loss(ctx, model(ctx, batch.inputs), batch.targets);
  };
  if (!keeps_loss) spec.loss = nullptr;
  return spec;
}

std::vector<double> EvaluationsOf(const Reports& reports) {
  std::vector<double> losses;
  for (const EvaluationReport& report : reports.evaluations) {
    losses.push_back(report.loss);
    losses.push_back(report.accuracy);
    losses.push_back(static_cast<double>(report.count));
  }
  return losses;
}

TEST(TrainingStepJobTest, AStepWithTheLossHasItsBits) {
  for (const int dp : {1, 2}) {
    for (const std::int64_t micro_batch : {0, 4}) {
      JobSpec spec = TinyCnnJob(dp, /*steps=*/6);
      spec.plan.micro_batch_size = micro_batch;
      spec.eval_every = 2;
      const Reports plain = ReportsOf(spec);
      for (const bool keeps_loss : {false, true}) {
        const Reports own = ReportsOf(WithStep(spec, keeps_loss));
        EXPECT_EQ(own.losses(), plain.losses()) << dp << ", " << micro_batch;
        EXPECT_EQ(EvaluationsOf(own), EvaluationsOf(plain));
        EXPECT_EQ(own.info.plan.stages[0].buckets,
                  plain.info.plan.stages[0].buckets);
      }
    }
  }
}

// Dropout draws by the place of a sample in the job.
TEST(TrainingStepJobTest, ItDrawsAsTheModelDoes) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/4);
  spec.model = MakeDropoutMlp;
  EXPECT_EQ(ReportsOf(WithStep(spec)).losses(), ReportsOf(spec).losses());
}

TEST(TrainingStepJobTest, SimulatedReplicas) {
  JobSpec spec = SmallJob({/*ranks=*/2});
  const Reports plain = ReportsOf(spec);
  spec = WithStep(spec);
  for (const std::uint64_t seed : Seeds(50)) {
    SimulationOptions options;
    options.seed = seed;
    Simulation simulation(spec, options);
    Reports reports;
    ASSERT_TRUE(simulation.Run(&reports).ok()) << ReplayCommand(seed);
    ASSERT_TRUE(simulation.Check().ok())
        << simulation.Check() << ReplayCommand(seed);
    ASSERT_EQ(reports.losses(), plain.losses()) << ReplayCommand(seed);
  }
}

// --- A step that is more than a loss of the model's output ---

// Its Forward() is the encoder alone, as in Lightning's first example.
struct Autoencoder : nn::Net {
  Var Forward(Var x) override { return encoder(x.Flatten()); }
  Var TrainingStep(nn::Context& ctx, const data::Batch& batch) {
    const Var x = Var(ctx, batch.inputs).Flatten();
    return nn::MeanSquaredError(decoder(encoder(x).Relu()), x);
  }
  nn::Linear& encoder = Add<nn::Linear>("encoder", 784, 8);
  nn::Linear& decoder = Add<nn::Linear>("decoder", 8, 784);
  nn::Linear& unused = Add<nn::Linear>("unused", 3, 3);
};

JobSpec AutoencoderJob() {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/16);
  spec.eval_every = 8;
  spec.optimizer = nn::AdamOptions{/*lr=*/0.01};
  spec.model = [] { return std::make_unique<Autoencoder>(); };
  spec.loss = nullptr;
  spec.training_step = &Autoencoder::TrainingStep;
  return spec;
}

TEST(TrainingStepJobTest, TrainsWhatTheStepUses) {
  const Reports reports = ReportsOf(AutoencoderJob());
  const pipeline::StagePlan& stage = reports.info.plan.stages[0];
  const auto names = [&](const std::vector<int>& indices) {
    std::string all;
    for (const int i : indices) all += stage.parameters[i] + " ";
    return all;
  };
  std::string trained;
  for (const std::vector<int>& bucket : stage.buckets) trained += names(bucket);
  EXPECT_EQ(trained,
            "decoder.bias decoder.weight encoder.bias encoder.weight ");
  EXPECT_EQ(names(stage.frozen), "unused.weight unused.bias ");
  ASSERT_EQ(reports.evaluations.size(), 2u);
  EXPECT_LT(reports.evaluations[1].loss, reports.evaluations[0].loss);
  EXPECT_EQ(reports.evaluations[0].count % 784, 0);
}

// --- Mistakes ---

std::string ErrorOf(const JobSpec& spec) {
  return std::string(RunJob(spec).status().message());
}

TEST(TrainingStepJobTest, WhatIsWrongWithAStep) {
  JobSpec spec = WithStep(TinyCnnPipeline(/*dp=*/1, /*pp=*/2, /*steps=*/1));
  EXPECT_EQ(ErrorOf(spec),
            "JobSpec.training_step is set, which calls a whole model, but "
            "PlanOptions.mesh.pp = 2 ranks hold parts of it; give a pipeline a "
            "loss in its place: JobSpec.loss");
  spec = AutoencoderJob();
  spec.model = MakeDropoutMlp;
  EXPECT_EQ(ErrorOf(spec),
            "the training step is a member of another class than the model; "
            "give JobSpec.training_step that of the model which JobSpec.model "
            "makes");
  spec.training_step = nullptr;
  EXPECT_EQ(ErrorOf(spec), "JobSpec: loss is not set; set it");
}

TEST(TrainingStepJobTest, AStepWithoutALoss) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/1);
  spec.training_step = [](nn::Context& ctx, nn::Module& model,
                          const data::Batch& batch) {
    return model(ctx, batch.inputs);
  };
  EXPECT_NE(ErrorOf(spec).find(
                "step 1, micro-batch 0: the training step returned f32[32, 10] "
                "on cpu:0, not the statistics of a loss; return those of "
                "nn/ops/loss.h"),
            std::string::npos)
      << ErrorOf(spec);
}

}  // namespace
}  // namespace troupe::actors
