// Plans of models with skip connections across stages.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/modules/skip.h"
#include "pipeline/plan.h"
#include "tests/pipeline/plan_fixture.h"

namespace troupe::pipeline {
namespace {

TEST(SkipPlanTest, KnowsWhichSkipConnectionsCrossWhichCut) {
  const Plan plan = SkipPlanOf({3, 4, 5, 6});
  std::vector<std::string> crossing;
  for (const StagePlan& stage : plan.stages) {
    std::string& names = crossing.emplace_back();
    for (const SkipPlan& skip : stage.skips) {
      names += absl::StrCat(skip.name, " ", skip.spec.ToString(), " ");
    }
  }
  EXPECT_EQ(crossing,
            (std::vector<std::string>{
                "", "deep f32[2, 4] ", "deep f32[2, 4] near f32[2, 5] ",
                "deep f32[2, 4] near f32[2, 5] ", "deep f32[2, 4] "}));
  // The sum includes the activation, f32[2, 5].
  EXPECT_EQ(plan.stages[2].received_bytes(), 4 * 2 * (5 + 4 + 5));
  EXPECT_NE(plan.ToString().find("stage 3: [2, 5], deep f32[2, 4], near "
                                 "f32[2, 5] -> [2, 10], "),
            std::string::npos)
      << plan.ToString();
}

// Returns the error of a plan of this model for images of 28 x 28.
std::string ErrorOf(const nn::ModelFactory& factory,
                    const std::vector<Cut>& cuts) {
  PlanOptions options;
  options.mesh = Mesh(/*dp=*/1, static_cast<int>(cuts.size()) + 1);
  options.global_batch_size = 8;
  options.cuts = cuts;
  const absl::StatusOr<Plan> plan =
      MakePlan(options, factory, {28, 28, 1}, nn::DType::kF32, nn::Device{});
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << plan.status();
  return std::string(plan.status().message());
}

TEST(SkipPlanTest, ConnectionsThatEndNowhereAreRefused) {
  const auto model = [] {
    auto made = std::make_unique<nn::Sequential>();
    made->Append<nn::Flatten>();
    made->Append<nn::Stash>("lost");
    made->Append<nn::Linear>(784, 10);
    return made;
  };
  const std::string want =
      "module 1 stashes \"lost\", and no module pops it; pop it, or leave it "
      "out";
  EXPECT_EQ(ErrorOf(model, {}), want);
  EXPECT_EQ(ErrorOf(model, {2}), want);
}

// A later stage must not use a name of an earlier one, as in one part.
TEST(SkipPlanTest, NamesAreThoseOfTheWholeModel) {
  const auto model = [] {
    auto made = std::make_unique<nn::Sequential>();
    made->Append<nn::Flatten>();
    made->Append<nn::Stash>("skip");
    made->Append<nn::PopAdd>("skip");
    made->Append<nn::Stash>("skip");
    made->Append<nn::PopAdd>("skip");
    return made;
  };
  for (const std::vector<Cut>& cuts : {std::vector<Cut>{}, {3}}) {
    EXPECT_EQ(ErrorOf(model, cuts),
              "in module 3: stashes \"skip\", a name under which module 2 has "
              "popped another tensor; use a name once in a model");
  }
}

}  // namespace
}  // namespace troupe::pipeline
