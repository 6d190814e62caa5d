// Optimizers in jobs: norms and checks of gradients cover all replicas and
// stages, and a job resumes from a checkpoint with the same bits.

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/optim/adam.h"
#include "base/file_system.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

#include "nn/serialize/safetensors.h"
#include "nn/tensor/caching_allocator.h"
namespace troupe::actors {
namespace {

JobSpec JobOn(int dp, int pp, std::int64_t steps) {
  JobSpec spec = TinyCnnJob(dp, steps);
  spec.test = nullptr;
  spec.plan.micro_batch_size = 8;
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  if (pp == 2) spec.plan.cuts = {6};
  if (pp == 3) spec.plan.cuts = {3, 7};
  return spec;
}

// Returns SGD with a limit well below the norm of the gradients.
OptimizerFactory ClippedSgd(double clip_grad_norm) {
  return [clip_grad_norm] {
    nn::SgdOptions options;
    options.lr = 0.5;
    options.common.clip_grad_norm = clip_grad_norm;
    return std::make_unique<nn::Sgd>(options);
  };
}

void ExpectNear(const std::vector<double>& got, const std::vector<double>& want,
                const std::string& what, double relative = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], relative * std::abs(want[i]))
        << what << ", " << i;
  }
}

std::vector<double> NormsOf(const Reports& reports) {
  std::vector<double> norms;
  for (const StepReport& step : reports.steps) norms.push_back(step.grad_norm);
  return norms;
}

TEST(OptimizerJobTest, TheNormOfGradientsIsThatOfAllStages) {
  std::vector<double> alone, norms_alone;
  for (const auto& [dp, pp] :
       {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2), std::pair(2, 2),
        std::pair(1, 3)}) {
    JobSpec spec = JobOn(dp, pp, /*steps=*/6);
    spec.optimizer = ClippedSgd(0.05);
    const Reports reports = ReportsOf(spec);
    EXPECT_EQ(absl::StrContains(reports.info.plan.ToString(), "NR"), pp > 1);
    if (alone.empty()) {
      alone = reports.losses();
      norms_alone = NormsOf(reports);
      EXPECT_GT(norms_alone.front(), 0.05) << "before clipping";
    }
    const std::string what = absl::StrCat("dp=", dp, " pp=", pp);
    ExpectNear(reports.losses(), alone, what);
    ExpectNear(NormsOf(reports), norms_alone, absl::StrCat("norm, ", what),
               /*relative=*/1e-4);
  }
  JobSpec spec = JobOn(1, 1, /*steps=*/6);
  spec.optimizer = ClippedSgd(0);
  const Reports reports = ReportsOf(spec);
  EXPECT_GT(std::abs(reports.losses().back() - alone.back()), 1e-3)
      << "nothing was clipped";
  EXPECT_EQ(NormsOf(reports), std::vector<double>(6, 0.0)) << "nobody asked";
}

TEST(OptimizerJobTest, StagesSkipAStepTogether) {
  JobSpec spec = JobOn(/*dp=*/2, /*pp=*/2, /*steps=*/3);
  spec.loss_scale = 0x1p127;
  spec.shuffle = false;
  spec.plan.global_batch_size = 256;  // every step has all samples
  spec.optimizer = [] {
    nn::SgdOptions options;
    options.common.skip_nonfinite = true;
    return std::make_unique<nn::Sgd>(options);
  };
  const Reports reports = ReportsOf(spec);
  ASSERT_EQ(reports.steps.size(), 3u);
  for (const StepReport& step : reports.steps) {
    EXPECT_TRUE(step.skipped) << step.step;
    EXPECT_EQ(step.loss, reports.steps[0].loss) << step.step;
  }
}

struct Kind {
  const char* name;
  OptimizerFactory optimizer;
};

std::vector<Kind> AllKinds() {
  const OptimizerFactory adamw = [] {
    nn::AdamOptions options = nn::AdamWDefaults();
    options.amsgrad = true;
    options.common.groups = {nn::NoDecayGroup()};
    options.common.schedule = nn::LrSchedule::Cosine(/*steps=*/8);
    options.common.clip_grad_norm = 1;
    options.common.ema_decay = 0.9;
    return std::make_unique<nn::Adam>(options);
  };
  const OptimizerFactory lamb = [] {
    nn::LambOptions options;
    options.weight_decay = 0.01;
    return std::make_unique<nn::Lamb>(options);
  };
  const OptimizerFactory lars = [] {
    nn::LarsOptions options;
    options.lr = 1;
    return std::make_unique<nn::Lars>(options);
  };
  return {{"adamw", adamw}, {"lamb", lamb}, {"lars", lars}};
}

TEST(OptimizerJobTest, AResumedJobHasTheBitsOfOneInOnePiece) {
  for (const Kind& kind : AllKinds()) {
    SCOPED_TRACE(kind.name);
    JobSpec spec = JobOn(/*dp=*/2, /*pp=*/1, /*steps=*/8);
    spec.optimizer = kind.optimizer;
    spec.checkpoint.dir = FreshFolder(absl::StrCat(kind.name, "_whole"));
    const Reports whole = ReportsOf(spec);
    spec.checkpoint.dir = FreshFolder(absl::StrCat(kind.name, "_parts"));
    spec.steps = 5;
    ReportsOf(spec);
    spec.steps = 8;
    spec.checkpoint.resume = true;
    const Reports rest = ReportsOf(spec);
    const std::vector<double> losses = whole.losses();
    EXPECT_EQ(rest.losses(),
              std::vector<double>(losses.begin() + 5, losses.end()));
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      EXPECT_EQ(FileBytes(absl::StrCat(rest.checkpoints.back(), "/", file)),
                FileBytes(absl::StrCat(whole.checkpoints.back(), "/", file)))
          << file;
    }
  }
}

}  // namespace
}  // namespace troupe::actors
