// Parameters that stages share: copies in each of them, in separate buckets,
// with a sum over the stages in the tables.

#include "pipeline/ties.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "pipeline/plan.h"
#include "pipeline/plan_json.h"
#include "pipeline/schedules/schedules.h"

namespace troupe::pipeline {
namespace {

// "in", ReLU, "middle", "out": "out" has the weights of "in", not its bias.
std::unique_ptr<nn::Sequential> Tied() {
  auto model = std::make_unique<nn::Sequential>();
  auto& in = model->AppendNamed<nn::Linear>("in", 3, 3);
  model->Append<nn::ReLU>();
  model->AppendNamed<nn::Linear>("middle", 3, 3);
  auto& out = model->AppendNamed<nn::Linear>("out", 3, 3);
  out.TieParameter("weight", in, "weight");
  return model;
}

absl::StatusOr<Plan> TiedPlan(
    std::vector<Cut> cuts, const nn::ModelFactory& model = Tied,
    const std::function<void(PlanOptions&)>& edit = nullptr) {
  PlanOptions options;
  options.mesh = Mesh(/*dp=*/2, static_cast<int>(cuts.size()) + 1);
  options.cuts = std::move(cuts);
  options.global_batch_size = 8;
  options.micro_batch_size = 2;
  if (edit) edit(options);
  return MakePlan(options, model, {3}, nn::DType::kF32, nn::Device{});
}

TEST(TiesTest, StagesHoldCopiesInBucketsOfTheirOwn) {
  const absl::StatusOr<Plan> plan = TiedPlan({2});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ToString(),
            "mesh dp=2 pp=2, global batch 8 = 2 x 2 micro-batches of 2, "
            "1 thread(s) per rank\n"
            "stage 0: [2, 3] -> [2, 3], 2 parameters in 2 bucket(s)\n"
            "  bucket 0: 3 elements: in.bias\n"
            "  bucket 1 (tied with stage 1): 9 elements: in.weight\n"
            "  train: F0 SA0 F1 SA1 LR RG0 B0 RG1 B1 TR1 AR0 UP0 AR1 UP1\n"
            "stage 1: [2, 3] -> [2, 3], 4 parameters in 2 bucket(s)\n"
            "  bucket 0: 15 elements: out.bias middle.bias middle.weight\n"
            "  bucket 1 (tied with stage 0): 9 elements: in.weight\n"
            "  train: RA0 F0 RA1 F1 LR B0 SG0 B1 SG1 TR1 AR0 UP0 AR1 UP1\n");
  EXPECT_EQ(plan->parameter_elems(), 2 * (9 + 3) + 3);
  const std::vector<Tie> ties = TiesOf(plan->stages);
  ASSERT_EQ(ties.size(), 1u);
  EXPECT_EQ(ties[0].name, "in.weight");
  EXPECT_EQ(ties[0].members, (std::vector<TieMember>{{0, 1}, {1, 1}}));
  EXPECT_EQ(PlacesOf(ties[0], plan->stages), (std::vector<int>{0, 1}));
  EXPECT_TRUE(CopiesIn(plan->stages, 0).empty());
  EXPECT_EQ(CopiesIn(plan->stages, 1), (std::set<std::string>{"in.weight"}));
}

TEST(TiesTest, AStageThatHasBothHasNoTie) {
  const absl::StatusOr<Plan> plan = TiedPlan({4}, [] {
    auto model = Tied();
    model->AppendNamed<nn::Linear>("last", 3, 3);
    return model;
  });
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(TiesOf(plan->stages).empty());
  EXPECT_EQ(plan->ranks[0].train.ToString().find("TR"), std::string::npos);
}

// A V has the first stage and the last on one rank.
TEST(TiesTest, ChunksOfOneRankAreTiedToo) {
  const absl::StatusOr<Plan> plan =
      TiedPlan({1, 2, 3}, Tied, [](PlanOptions& options) {
        options.mesh = Mesh(1, 2);
        ASSERT_TRUE(SetSchedule("v_half", options).ok());
      });
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<Tie> ties = TiesOf(plan->stages);
  ASSERT_EQ(ties.size(), 1u);
  EXPECT_EQ(PlacesOf(ties[0], plan->stages), (std::vector<int>{0}));
  const std::string text = plan->ranks[0].train.ToString();
  const std::string end = " 1TR1 0TR1 1AR0 1UP0 0AR0 0UP0 1AR1 1UP1 0AR1 0UP1";
  EXPECT_EQ(text.substr(text.size() - end.size()), end) << text;
}

// A parameter that one stage lists and another one uses is trained in both.
TEST(TiesTest, AreTrainedInAllStagesOrInNone) {
  class Unused : public nn::Linear {
   public:
    Unused() : nn::Linear(3, 3) {}
    nn::Tensor Forward(nn::Context&, const nn::Tensor& x) override { return x; }
  };
  const absl::StatusOr<Plan> unused = TiedPlan({1}, [] {
    auto model = std::make_unique<nn::Sequential>();
    auto& in = model->AppendNamed<Unused>("in");
    auto& out = model->AppendNamed<nn::Linear>("out", 3, 3);
    out.TieParameter("weight", in, "weight");
    return model;
  });
  ASSERT_TRUE(unused.ok()) << unused.status();
  EXPECT_EQ(unused->stages[0].parameters,
            (std::vector<std::string>{"in.weight", "in.bias"}));
  EXPECT_EQ(unused->stages[0].frozen, (std::vector<int>{1}));
  EXPECT_EQ(TiesOf(unused->stages).size(), 1u);

  const absl::StatusOr<Plan> frozen = TiedPlan({2}, [] {
    auto model = Tied();
    model->Parameters()[0]->requires_grad = false;
    return model;
  });
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_TRUE(TiesOf(frozen->stages).empty());
  EXPECT_EQ(CopiesIn(frozen->stages, 1), (std::set<std::string>{"in.weight"}));
  EXPECT_EQ(frozen->stages[1].frozen.size(), 1u);
}

TEST(TiesTest, SeveralTiesHaveEqualBucketsInAllTheirStages) {
  const auto model = [] {
    auto made = Tied();
    auto& middle = *made->children()[2];
    made->AppendNamed<nn::Linear>("last", 3, 3)
        .TieParameter("weight", middle, "weight");
    made->children()[3]->TieParameter("bias", *made->children()[0], "bias");
    return made;
  };
  const absl::StatusOr<Plan> plan =
      TiedPlan({2, 3, 4}, model, [](PlanOptions& options) {
        options.buckets.bucket_bytes = options.buckets.first_bucket_bytes = 40;
      });
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<Tie> ties = TiesOf(plan->stages);
  ASSERT_EQ(ties.size(), 3u);
  EXPECT_EQ(ties[0].members, (std::vector<TieMember>{{0, 0}, {2, 0}}));
  EXPECT_EQ(ties[1].members, (std::vector<TieMember>{{0, 1}, {2, 1}}));
  EXPECT_EQ(ties[2].name, "middle.weight");
  EXPECT_EQ(ties[2].members, (std::vector<TieMember>{{1, 1}, {3, 1}}));
  const std::string text = PlanToJson(*plan);
  EXPECT_EQ(PlanToJson(*PlanFromJson(text)), text);
}

// Returns the error of Check for the first plan with one change.
std::string BrokenTies(const std::function<void(Plan&)>& change) {
  Plan plan = *TiedPlan({2});
  EXPECT_EQ(plan.Check(), absl::OkStatus());
  change(plan);
  return std::string(plan.Check().message());
}

TEST(TiesTest, CopiesThatAreNotAlikeAreRefused) {
  const std::string why =
      " in.weight, which an earlier stage has too: copies of a parameter must "
      "be alike";
  EXPECT_EQ(BrokenTies([](Plan& plan) {
              for (auto& elems : plan.stages[1].parameter_elems) elems = 8;
            }),
            "plan: stages[1] has another size or dtype of" + why);
  EXPECT_EQ(BrokenTies([](Plan& plan) {
              StagePlan& stage = plan.stages[1];
              stage.frozen = stage.buckets.back();
              stage.buckets.pop_back();
            }),
            "plan: stages[1] does not train" + why);
  EXPECT_EQ(BrokenTies([](Plan& plan) {
              StagePlan& stage = plan.stages[1];
              stage.buckets[1].push_back(stage.buckets[0].back());
              stage.buckets[0].pop_back();
            }),
            "plan: stages[1] has another bucket around" + why);
  EXPECT_EQ(BrokenTies([](Plan& plan) {
              std::swap(plan.stages[1].buckets[0], plan.stages[1].buckets[1]);
            }),
            "plan: stages[1] has a bucket of its own behind that of" + why);
  EXPECT_EQ(BrokenTies([](Plan& plan) {
              plan.ranks[1].train =
                  *ParseTable("RA0 F0 RA1 F1 LR B0 SG0 B1 SG1 AR0 UP0 AR1 UP1");
            }),
            "plan: ranks[1].train: TR1 is missing");
  EXPECT_EQ(BrokenTies([](Plan& plan) {
              plan.ranks[1].train = *ParseTable(
                  "RA0 F0 RA1 F1 LR B0 SG0 B1 SG1 TR0 TR1 AR0 UP0 AR1 UP1");
            }),
            "plan: ranks[1].train: TR0 is of a bucket that no other stage has");
}

// The sum over stages comes between the last gradient and the replicas' sum.
TEST(TiesTest, ATableWaitsForTheSumOverStages) {
  const StepTable table = *ParseTable("F0 LR B0 TR0 AR0 UP0");
  EXPECT_EQ(Validate(table), absl::OkStatus());
  const auto needs = [&](ActionKind kind) {
    return table.actions[table.Find(kind, 0)].needs;
  };
  EXPECT_EQ(needs(ActionKind::kReduceTied),
            (std::vector<Signal>{{SignalKind::kBucketReady, 0}}));
  EXPECT_EQ(needs(ActionKind::kReduceBucket),
            (std::vector<Signal>{{SignalKind::kDone, 3}}));
  EXPECT_EQ(Validate(*ParseTable("F0 LR B0 TR0")).message(),
            "schedule: bucket 0 of 1 is never reduced; add an AR or RU for it");
}

TEST(TiesTest, GroupsHaveNumbersOfTheirOwn) {
  EXPECT_EQ(TiedGroup(0), GroupId::kTied);
  for (const int tie : {0, 1, kTiesMax - 1}) {
    EXPECT_TRUE(IsTied(TiedGroup(tie)));
    EXPECT_EQ(TieOf(TiedGroup(tie)), tie);
  }
  for (const GroupId group : {GroupId::kDpPp, GroupId::kTp, GroupId::kPp}) {
    EXPECT_FALSE(IsTied(group));
  }
}

// A module with a layer that it did not add.
class PlainMember : public nn::Module {
 public:
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    return layer_.Forward(ctx, x);
  }

 private:
  nn::Linear layer_{3, 2};
};

TEST(TiesTest, RefusesParametersOfNoModule) {
  EXPECT_EQ(
      TiedPlan({},
               [] {
                 auto model = Tied();
                 model->Append<PlainMember>();
                 return model;
               })
          .status(),
      absl::InvalidArgumentError(
          "the model uses a parameter weight[2, 3], which no module of it has: "
          "a layer that is a plain member (nn::Linear a{10, 10};) is not part "
          "of the model; add it: nn::Linear& a = Add<nn::Linear>(\"a\", 10, "
          "10);"));
}

}  // namespace
}  // namespace troupe::pipeline
