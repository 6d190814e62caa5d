#include "tests/actors/sim/divided_jobs.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "tests/actors/sim/deep_models.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {

std::string Layout::ToString() const {
  return absl::StrCat("tp ", tp, ", dp ", dp, ", pp ", pp,
                      zero > 0 ? absl::StrCat(", ZeRO ", zero) : "",
                      shares_tokens ? ", shared tokens" : "");
}

JobSpec LaidOut(JobSpec spec, const Layout& layout) {
  spec.plan.mesh = pipeline::Mesh(layout.dp, layout.pp, layout.tp);
  spec.plan.sequence_parallel = layout.shares_tokens;
  spec.plan.zero_stage = layout.zero;
  spec.plan.zero_accumulates_whole = true;
  return spec;
}

MakeOptimizerFn SgdThatClips() {
  return [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.1;
    sgd.momentum = 0.9;
    sgd.common.clip_grad_norm = 0.05;
    return std::make_unique<nn::Sgd>(sgd);
  };
}

MakeOptimizerFn AdamThatClips() {
  return [] {
    nn::AdamOptions adam = nn::AdamWDefaults();
    adam.lr = 0.01;
    adam.common.clip_grad_norm = 0.05;
    adam.common.skip_nonfinite = true;
    adam.common.ema_decay = 0.9;
    return std::make_unique<nn::Adam>(adam);
  };
}

JobSpec ExactJob(const Layout& layout) {
  SmallJobOptions options;
  options.numbers = Numbers::kExact;
  options.width = 8;
  options.pieces = true;
  JobSpec spec = LaidOut(SmallJob(options), layout);
  if (layout.pp == 2) spec.plan.cuts = {2};
  spec.test = spec.train;
  spec.eval_every = 1;
  return spec;
}

JobSpec GptJob(const Layout& layout, const MakeOptimizerFn& optimizer,
               bool tie_head, double dropout) {
  JobSpec spec = SmallGpt().Job(pipeline::Mesh(), /*micro_batches=*/4);
  spec.model = [tie_head, dropout] {
    nn::Gpt2Options options;
    options.dropout = dropout;
    options.layers = 2;
    options.heads = 4;
    options.width = 16;
    options.context = 4;
    options.vocab_size = 7;
    options.tie_head = tie_head;
    return *nn::MakeGpt2(options);
  };
  spec.optimizer = optimizer;
  spec.steps = 6;
  if (layout.pp == 2) spec.plan.cuts = {"h.1"};
  return LaidOut(std::move(spec), layout);
}

void ExpectNear(const Reports& got, const Reports& want) {
  ASSERT_EQ(got.steps.size(), want.steps.size());
  for (std::size_t i = 0; i < want.steps.size(); ++i) {
    const StepReport &g = got.steps[i], &w = want.steps[i];
    EXPECT_NEAR(g.loss, w.loss, 1e-5 * w.loss) << "step " << i;
    EXPECT_NEAR(g.grad_norm, w.grad_norm, 1e-5 * w.grad_norm) << "step " << i;
    EXPECT_EQ(g.accuracy, w.accuracy) << "step " << i;
  }
  ASSERT_EQ(got.evaluations.size(), want.evaluations.size());
  for (std::size_t i = 0; i < want.evaluations.size(); ++i) {
    const auto &g = got.evaluations[i], &w = want.evaluations[i];
    EXPECT_NEAR(g.loss, w.loss, 1e-5 * w.loss) << "evaluation " << i;
    EXPECT_EQ(g.accuracy, w.accuracy) << "evaluation " << i;
    EXPECT_EQ(g.count, w.count) << "evaluation " << i;
  }
}

std::string Saved(JobSpec spec, const std::string& name, std::uint64_t seed) {
  spec.checkpoint.dir = FreshFolder(name);
  spec.checkpoint.every = 100;  // the last step alone
  spec.checkpoint.compare_replicas = true;
  const SimulatedRun run = Simulate(spec, seed);
  EXPECT_EQ(run.check, absl::OkStatus());
  EXPECT_EQ(run.reports.checkpoints.size(), 1u);
  return run.reports.checkpoints.empty() ? "" : run.reports.checkpoints[0];
}

std::string ThreeSteps(const std::string& name, const Layout& layout,
                       const MakeOptimizerFn& optimizer) {
  JobSpec spec = GptJob(layout, optimizer);
  spec.steps = 3;
  return Saved(std::move(spec), name, /*seed=*/2);
}

Reports From(const std::string& path, const Layout& layout,
             const MakeOptimizerFn& optimizer) {
  JobSpec spec = GptJob(layout, optimizer);
  spec.checkpoint.from = path;
  const SimulatedRun run = Simulate(spec, std::uint64_t{3});
  EXPECT_EQ(run.check, absl::OkStatus()) << layout.ToString();
  return run.reports;
}

}  // namespace troupe::actors
