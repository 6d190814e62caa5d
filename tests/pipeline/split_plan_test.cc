// Tests plans of models whose layers are cut along tp.

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/norm.h"
#include "nn/modules/sequential.h"
#include "nn/modules/tokens.h"
#include "pipeline/plan.h"
#include "pipeline/plan_json.h"

namespace troupe::pipeline {
namespace {

PlanOptions OptionsOf(int tp) {
  PlanOptions options;
  options.mesh = Mesh(/*dp=*/1, /*pp=*/1, tp);
  options.global_batch_size = 4;
  return options;
}

absl::StatusOr<Plan> SplitPlanOf(const PlanOptions& options,
                                 const nn::ModelFactory& factory) {
  return MakePlan(options, factory, /*input=*/{6}, nn::DType::kF32,
                  nn::Device{});
}

std::unique_ptr<nn::Module> TwoCutLayers() {
  auto model = std::make_unique<nn::Sequential>();
  model->Append<nn::Linear>(6, 8).set_parallel(nn::Linear::kColumn);
  model->Append<nn::Linear>(8, 2).set_parallel(nn::Linear::kRow);
  return model;
}

TEST(SplitPlanTest, PiecesAlongTpHaveBucketsOfTheirOwn) {
  PlanOptions options = OptionsOf(/*tp=*/2);
  options.reductions.update_needs_all_buckets = true;
  const absl::StatusOr<Plan> plan = SplitPlanOf(options, TwoCutLayers);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ToString(),
            "mesh tp=2 dp=1 pp=1, global batch 4 = 1 x 1 micro-batches of 4, "
            "1 thread(s) per rank\n"
            "stage 0: [4, 6] -> [4, 2], 4 parameters in 2 bucket(s)\n"
            "  bucket 0: 2 elements: 1.bias\n"
            "  bucket 1 (split along tp): 36 elements: 1.weight 0.bias "
            "0.weight\n"
            "  train: F0 LR B0 AR0 UP0 AR1 UP1 NR\n");
  EXPECT_EQ(plan->parameter_elems(), 6 * 8 + 8 + 8 * 2 + 2);
  // Without pieces nothing has to be added up.
  const absl::StatusOr<Plan> whole =
      SplitPlanOf(options, [] { return std::make_unique<nn::Linear>(6, 8); });
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->ranks[0].train.ToString(), "F0 LR B0 AR0 UP0");
}

// Gradients of a rank's tokens are in buckets of their own.
TEST(SplitPlanTest, PartsOfGradientsHaveBucketsOfTheirOwn) {
  PlanOptions options = OptionsOf(/*tp=*/2);
  options.sequence_parallel = true;
  const nn::ModelFactory factory = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::TakeTokens>();
    model->Append<nn::LayerNorm>(6).set_parallel(true);
    model->Append<nn::Linear>(6, 8).set_parallel(nn::Linear::kColumn);
    model->Append<nn::Linear>(8, 6).set_parallel(nn::Linear::kRow);
    model->Append<nn::GatherTokens>();
    model->Append<nn::Linear>(6, 2);
    model->set_shares_tokens();
    return model;
  };
  const absl::StatusOr<Plan> plan = MakePlan(
      options, factory, /*input=*/{10, 6}, nn::DType::kF32, nn::Device{});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(
      plan->ToString(),
      "mesh tp=2 dp=1 pp=1, global batch 4 = 1 x 1 micro-batches of 4, "
      "1 thread(s) per rank\n"
      "stage 0: [4, 10, 6] -> [4, 10, 2], 8 parameters in 3 bucket(s)\n"
      "  bucket 0: 14 elements: 5.bias 5.weight\n"
      "  bucket 1 (split along tp): 52 elements: 3.weight 2.bias 2.weight\n"
      "  bucket 2 (summed along tp): 18 elements: 3.bias 1.bias 1.weight\n"
      "  train: F0 LR B0 AR0 UP0 AR1 UP1 AR2 UP2\n");
  const absl::StatusOr<Plan> read = PlanFromJson(PlanToJson(*plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PlanToJson(*read), PlanToJson(*plan));
  EXPECT_TRUE(read->stages[0].IsPartialBucket(2));
}

// Texts, and hashes, of plans without blocks have none of it.
TEST(SplitPlanTest, BlocksArePartOfThePlan) {
  PlanOptions options = OptionsOf(/*tp=*/2);
  const absl::StatusOr<Plan> plain = SplitPlanOf(options, TwoCutLayers);
  options.depth_blocks = 4;
  const absl::StatusOr<Plan> plan = SplitPlanOf(options, TwoCutLayers);
  ASSERT_TRUE(plain.ok() && plan.ok()) << plan.status();
  EXPECT_EQ(PlanToJson(*plain).find("depth_blocks"), std::string::npos);
  const absl::StatusOr<Plan> read = PlanFromJson(PlanToJson(*plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->depth_blocks, 4);
}

TEST(SplitPlanTest, AWidthThatTpDoesNotDivideIsRefusedByField) {
  const std::string error = std::string(
      SplitPlanOf(OptionsOf(/*tp=*/3), TwoCutLayers).status().message());
  EXPECT_NE(error.find("layer 0"), std::string::npos) << error;
  EXPECT_NE(error.find("8 is no multiple of 3"), std::string::npos) << error;
}

}  // namespace
}  // namespace troupe::pipeline
