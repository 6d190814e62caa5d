// Tests PlanOptions::depth_blocks in jobs: every number of ranks along tp has
// the bits of one rank, which differ without blocks.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/modules/parameter_dtype.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "pipeline/plan.h"
#include "tests/actors/sim/divided_jobs.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// Returns a job of a GPT with 9 tokens: four blocks of 3, of which the last is
// empty.
JobSpec InBlocks(const Layout& layout, int blocks,
                 const MakeOptimizerFn& optimizer = nn::SgdOptions{
                     /*lr=*/0.1, /*momentum=*/0.9}) {
  JobSpec spec = GptJob(layout, optimizer);
  spec.model = [] {
    nn::Gpt2Options options;
    options.dropout = 0.1;
    options.layers = 2;
    options.heads = 4;
    options.width = 16;
    options.context = 4;
    options.vocab_size = 9;
    return *nn::MakeGpt2(options);
  };
  spec.plan.depth_blocks = blocks;
  spec.test = spec.train;
  spec.eval_every = 3;
  return spec;
}

std::vector<double> EvaluatedOf(const Reports& reports) {
  std::vector<double> losses;
  for (const auto& evaluation : reports.evaluations) {
    losses.push_back(evaluation.loss);
  }
  return losses;
}

TEST(DepthBlocksTest, EveryTpHasTheBitsOfOneRank) {
  const SimulatedRun one = Simulate(InBlocks({1, 1, 1}, 4), std::uint64_t{0});
  ASSERT_EQ(one.check, absl::OkStatus());
  const std::string want = Saved(InBlocks({1, 1, 1}, 4), "blocks_1", 0);
  for (const Layout& layout : {Layout{2, 1, 1}, Layout{4, 1, 1}}) {
    SCOPED_TRACE(layout.ToString());
    const SimulatedRun run = Simulate(InBlocks(layout, 4), std::uint64_t{1});
    ASSERT_EQ(run.check, absl::OkStatus());
    EXPECT_EQ(run.reports.losses(), one.reports.losses());
    EXPECT_EQ(EvaluatedOf(run.reports), EvaluatedOf(one.reports));
    const std::string got = Saved(InBlocks(layout, 4), "blocks", 2);
    for (const char* const file :
         {"/model.safetensors", "/optimizer.safetensors"}) {
      EXPECT_EQ(FileBytes(got + file), FileBytes(want + file)) << file;
    }
  }
  // The comparison is worth something.
  const SimulatedRun plain = Simulate(InBlocks({2, 1, 1}, 1), std::uint64_t{0});
  EXPECT_NE(plain.reports.losses(), one.reports.losses());
}

// Replicas and stages beside them change nothing, nor does a loss that gets
// gathered logits, or one with smoothing and weights.
TEST(DepthBlocksTest, EveryMeshAndLossHasTheBitsOfTpOne) {
  nn::ops::CrossEntropyOptions options;
  options.label_smoothing = 0.2;
  options.class_weights = {1, 2, 0.5, 1, 1, 3, 0.25, 1, 2};
  const nn::ops::LossFn split = nn::ops::CrossEntropyLoss(options);
  const nn::ops::LossFn whole = [split](nn::Context& ctx, nn::Tensor logits,
                                        const nn::Tensor& target) {
    return split(ctx, std::move(logits), target);
  };
  for (const nn::ops::LossFn& loss : {split, whole}) {
    for (const Layout& layout : {Layout{1, 2, 1, 1}, Layout{1, 1, 2}}) {
      SCOPED_TRACE(layout.ToString());
      JobSpec spec = InBlocks(layout, 2);
      spec.loss = loss;
      const SimulatedRun want = Simulate(spec, std::uint64_t{0});
      spec.plan.mesh = pipeline::Mesh(layout.dp, layout.pp, /*tp=*/2);
      const SimulatedRun got = Simulate(spec, std::uint64_t{3});
      ASSERT_EQ(want.check, absl::OkStatus());
      ASSERT_EQ(got.check, absl::OkStatus());
      EXPECT_EQ(got.reports.losses(), want.reports.losses());
      EXPECT_EQ(EvaluatedOf(got.reports), EvaluatedOf(want.reports));
    }
  }
}

// Squares are added up bucket by bucket, and buckets follow from tp.
TEST(DepthBlocksTest, NormsDifferByTheOrderOfAnF64Sum) {
  const SimulatedRun one =
      Simulate(InBlocks({1, 1, 1}, 4, SgdThatClips()), std::uint64_t{0});
  ASSERT_EQ(one.check, absl::OkStatus());
  ASSERT_GT(one.reports.steps[0].grad_norm, 0.05) << "no step is clipped";
  for (const Layout& layout : {Layout{2, 1, 1}, Layout{4, 1, 1}}) {
    const SimulatedRun run =
        Simulate(InBlocks(layout, 4, SgdThatClips()), std::uint64_t{1});
    ASSERT_EQ(run.check, absl::OkStatus());
    const StepReport &got = run.reports.steps[0], &want = one.reports.steps[0];
    EXPECT_EQ(got.loss, want.loss);
    EXPECT_NEAR(got.grad_norm, want.grad_norm, 1e-12 * want.grad_norm);
  }
}

void ExpectRefused(const JobSpec& spec, const std::vector<std::string>& others,
                   const std::string& why) {
  const absl::Status status = Simulate(spec, std::uint64_t{0}).result.status();
  std::vector<std::string> fields = {"PlanOptions.depth_blocks"};
  fields.insert(fields.end(), others.begin(), others.end());
  EXPECT_EQ(base::FieldsOf(status), fields) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
}

TEST(DepthBlocksTest, RefusesWhatHasOtherBits) {
  ExpectRefused(InBlocks({1, 1, 1}, 3), {}, "must be a power of two up to 64");
  ExpectRefused(InBlocks({4, 1, 1}, 2), {"PlanOptions.mesh.tp"},
                "PlanOptions.mesh.tp is 4");
  ExpectRefused(InBlocks({1, 1, 1}, 64), {},
                "for depth_blocks = 64: 16 is no multiple of 64");
  ExpectRefused(InBlocks({2, 1, 1, 0, /*shares_tokens=*/true}, 2),
                {"PlanOptions.sequence_parallel"}, "of their own tokens");
  JobSpec threads = InBlocks({1, 1, 1}, 2);
  threads.plan.threads_per_rank = 2;
  ExpectRefused(threads, {"PlanOptions.threads_per_rank"}, "is 2; set it to 1");
  JobSpec narrow = InBlocks({1, 1, 1}, 2);
  narrow.model = [whole = narrow.model] {
    std::unique_ptr<nn::Module> model = whole();
    nn::SetParameterDType(*model, nn::DType::kBF16);
    return model;
  };
  ExpectRefused(narrow, {}, "is bf16");
}

}  // namespace
}  // namespace troupe::actors
