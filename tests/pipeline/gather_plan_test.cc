// Tests plans whose replicas gather values before their uses.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "pipeline/plan.h"
#include "pipeline/plan_diff.h"
#include "pipeline/plan_json.h"
#include "pipeline/stage_buckets.h"

namespace troupe::pipeline {
namespace {

// A layer, a Sequential of two, and one that shares the first one's weight.
std::unique_ptr<nn::Module> Layers(bool recomputes) {
  auto model = std::make_unique<nn::Sequential>();
  auto& first = model->Append<nn::Linear>(4, 4);
  auto& inner = model->Append<nn::Sequential>();
  inner.Append<nn::Linear>(4, 4);
  inner.Append<nn::ReLU>();
  inner.Append<nn::Linear>(4, 4);
  inner.set_recomputes(recomputes);
  model->Append<nn::Linear>(4, 4).TieParameter("weight", first, "weight");
  return model;
}

PlanOptions OptionsOf(int stage) {
  PlanOptions options;
  options.mesh = Mesh(/*dp=*/2);
  options.global_batch_size = 4;
  options.zero_stage = stage;
  options.buckets = {/*first_bucket_bytes=*/1, /*bucket_bytes=*/1};
  return options;
}

Plan PlanOf(const PlanOptions& options, bool recomputes = false) {
  return MakePlan(
             options, [=] { return Layers(recomputes); }, /*input=*/{4},
             nn::DType::kF32, nn::Device{})
      .value();
}

// Returns the first and last part of each parameter.
std::string PartsOf(const StagePlan& stage) {
  std::string text;
  for (int i = 0; i < static_cast<int>(stage.parameters.size()); ++i) {
    absl::StrAppend(&text, stage.parameters[i], " ", stage.FirstPart(i), "-",
                    stage.LastPart(i), "\n");
  }
  return text;
}

TEST(GatherPlanTest, PartsAreTheModulesOfSequentials) {
  EXPECT_EQ(PartsOf(PlanOf(OptionsOf(3)).stages[0]),
            "0.weight 0-3\n0.bias 0-0\n"
            "1.0.weight 1-1\n1.0.bias 1-1\n"
            "1.2.weight 2-2\n1.2.bias 2-2\n"
            "2.bias 3-3\n");
  EXPECT_EQ(PartsOf(PlanOf(OptionsOf(3), /*recomputes=*/true).stages[0]),
            "0.weight 0-2\n0.bias 0-0\n"
            "1.0.weight 1-1\n1.0.bias 1-1\n"
            "1.2.weight 1-1\n1.2.bias 1-1\n"
            "2.bias 2-2\n");
  EXPECT_TRUE(PlanOf(OptionsOf(1)).stages[0].first_parts.empty());
}

// The positions of a ViT are such a child: their names have no prefix.
TEST(GatherPlanTest, OneChildMayHaveNoName) {
  const nn::ModelFactory make = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->AppendNamed<nn::Linear>("first", 4, 4);
    model->AppendNamed<nn::Linear>("", 4, 4);
    model->AppendNamed<nn::Sequential>("blocks").Append<nn::Linear>(4, 4);
    return model;
  };
  const Plan plan =
      MakePlan(OptionsOf(3), make, /*input=*/{4}, nn::DType::kF32, {}).value();
  EXPECT_EQ(PartsOf(plan.stages[0]),
            "first.weight 0-0\nfirst.bias 0-0\n"
            "weight 1-1\nbias 1-1\n"
            "blocks.0.weight 2-2\nblocks.0.bias 2-2\n");
}

TEST(GatherPlanTest, BytesAheadBoundWhatIsGathered) {
  PlanOptions options = OptionsOf(3);
  options.zero_ahead_bytes = 0;
  const Plan least = PlanOf(options);
  options.zero_keep = true;
  const Plan kept = PlanOf(options);
  // Half of the shared weight, and of the weight and bias of a layer.
  EXPECT_EQ(MostGathered(least, /*pp=*/0), (16 + 16 + 4) * 4 / 2);
  EXPECT_EQ(MostGathered(kept, 0), (3 * 16 + 4 * 4) * 4 / 2);
  EXPECT_EQ(MostGathered(PlanOf(OptionsOf(1)), 0), 0);
  options.zero_ahead_bytes = -1;
  EXPECT_FALSE(MakePlan(
                   options, [] { return Layers(false); }, /*input=*/{4},
                   nn::DType::kF32, nn::Device{})
                   .ok());
}

TEST(GatherPlanTest, TravelsAsText) {
  PlanOptions options = OptionsOf(3);
  options.zero_ahead_bytes = 48;
  options.zero_keep = true;
  options.kernels = "some";
  const Plan plan = PlanOf(options);
  EXPECT_EQ(plan.Check(), absl::OkStatus());
  const absl::StatusOr<Plan> read = PlanFromJson(PlanToJson(plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PlanToJson(*read), PlanToJson(plan));
  EXPECT_EQ(PartsOf(read->stages[0]), PartsOf(plan.stages[0]));
  EXPECT_NE(read->ToString().find(", ZeRO stage 3, up to 48 bytes of values "
                                  "gathered ahead, kept for the step\n"),
            std::string::npos)
      << read->ToString();
  EXPECT_EQ(Diff(plan, PlanOf(OptionsOf(3)))[0],
            "zero_ahead_bytes: 48, 33554432");
  // A plan has them only if its tables gather.
  options.zero_stage = 2;
  EXPECT_EQ(PlanToJson(PlanOf(options)).find("zero_ahead"), std::string::npos);
}

TEST(GatherPlanTest, RefusesTablesOfAnotherStage) {
  Plan plan = PlanOf(OptionsOf(1));
  plan.zero_stage = 3;
  EXPECT_EQ(
      plan.Check().message(),
      "plan: ranks[0].train: has AG0, but updates need no gather; leave it "
      "out");
  plan = PlanOf(OptionsOf(3));
  plan.zero_stage = 1;
  EXPECT_EQ(plan.Check().message(),
            "plan: ranks[0].train: has GV5, but values stay whole; leave it "
            "out");
  plan = PlanOf(OptionsOf(3));
  plan.ranks[0].evaluate = *ParseTable("F0");
  EXPECT_EQ(plan.Check().message(),
            "plan: ranks[0].evaluate: has no GV0, but replicas have slices of "
            "the bucket's values; add it");
}

}  // namespace
}  // namespace troupe::pipeline
