// Jobs whose replicas gather parameters before their uses (ZeRO's stage 3).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.h"
#include "data/subset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/models/vit.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "tests/actors/sim/deep_models.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kMicroBatch = 4;

JobSpec SmallVitJob() {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/2);
  spec.model = [] {
    nn::VitOptions options;
    options.depth = 2;
    options.heads = 2;
    options.width = 8;
    options.image_size = 28;
    options.patch_size = 7;
    options.in_channels = 1;
    options.num_classes = 10;
    return *nn::MakeVit(options);
  };
  return spec;
}

struct LayersCase {
  const char* name;
  JobSpec spec;
  std::int64_t test_samples;
};

// Convolutions, batch norms, attention. A replica has a batch less than the
// other, or none.
std::vector<LayersCase> LayersCases() {
  return {{"lenet", TinyCnnJob(/*dp=*/2, /*steps=*/2), 2 * kMicroBatch + 1},
          {"resnet", SmallResNet18().job, 1},
          {"gpt", SmallGpt(/*tie_head=*/true).job, 2 * kMicroBatch + 1},
          {"vit", SmallVitJob(), 1}};
}

// Replicas run as many batches of an evaluation as the one with most, of which
// some are empty, since each gathers.
TEST(GatheredValuesJobTest, EmptyBatchesOfEvaluationsAddNothing) {
  for (auto& [name, spec, test_samples] : LayersCases()) {
    SCOPED_TRACE(name);
    spec.test = *data::MakeSubset(spec.train, 0, test_samples);
    spec.plan.micro_batch_size = kMicroBatch;
    spec.plan.global_batch_size = 2 * kMicroBatch;
    spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
    spec.plan.buckets.bucket_bytes = 2000;
    const Reports whole = ReportsOf(spec);
    spec.plan.zero_stage = 3;
    spec.plan.zero_ahead_bytes = 1000;
    const Reports gathered = ReportsOf(spec);
    EXPECT_EQ(gathered.losses(), whole.losses());
    ASSERT_EQ(gathered.evaluations.size(), 1u);
    EXPECT_EQ(gathered.evaluations[0].loss, whole.evaluations[0].loss);
    EXPECT_EQ(gathered.evaluations[0].count, whole.evaluations[0].count);
    EXPECT_EQ(gathered.evaluations[0].accuracy, whole.evaluations[0].accuracy);

    // The model as it begins, on one rank.
    spec.train = nullptr;
    spec.steps = 0;
    const Reports two = ReportsOf(spec);
    spec.plan.mesh = pipeline::Mesh(/*dp=*/1);
    const Reports one = ReportsOf(spec);
    ASSERT_EQ(two.evaluations.size(), 1u);
    EXPECT_EQ(two.evaluations[0].count, one.evaluations[0].count);
    EXPECT_EQ(two.evaluations[0].accuracy, one.evaluations[0].accuracy);
    EXPECT_NEAR(two.evaluations[0].loss, one.evaluations[0].loss,
                1e-6 * one.evaluations[0].loss);
  }
}

// Uses a parameter of an earlier module, but not in the shape-only forward.
class LateReader : public nn::Module {
 public:
  explicit LateReader(nn::Parameter& early) : early_(early) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    if (!ctx.shape_only()) ctx.Use(early_);
    return x;
  }

 private:
  nn::Parameter& early_;
};

TEST(GatheredValuesJobTest, AReleasedParameterThatIsUsedIsNamed) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/1);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    auto& early = model->Append<nn::Linear>(784, 10);
    model->Append<nn::Linear>(10, 10);
    model->Append<LateReader>(*early.Parameters()[0]);
    return model;
  };
  spec.plan.buckets = {/*first_bucket_bytes=*/1, /*bucket_bytes=*/1};
  spec.plan.zero_stage = 2;
  ReportsOf(spec);
  spec.plan.zero_stage = 3;
  spec.plan.zero_ahead_bytes = 0;
  for (const bool keeps : {false, true}) {
    spec.plan.zero_keep = keeps;
    EXPECT_THAT(
        std::string(RunJob(spec).status().message()),
        testing::EndsWith(
            "in module 3: parameter 1.weight is used after modules behind it, "
            "which the shape-only forward did not do, and its values are "
            "released already; use it there too, or set "
            "PlanOptions.zero_stage to 2"));
  }
}

}  // namespace
}  // namespace troupe::actors
