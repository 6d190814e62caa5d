// Plan::Check: rejects each kind of plan whose parts do not fit, by field.

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipeline/plan.h"
#include "tests/pipeline/plan_fixture.h"

namespace troupe::pipeline {
namespace {

// Returns the error of Check for a plan with one change.
std::string Broken(const std::function<void(Plan&)>& change) {
  Plan plan = SmallPlan();
  EXPECT_EQ(plan.Check(), absl::OkStatus());
  change(plan);
  return std::string(plan.Check().message());
}

TEST(PlanCheckTest, TheLastMicroBatchMayBeSmaller) {
  // Two micro-batches of 2 are the rank's share of 8; of 6 it is 3.
  EXPECT_EQ(Broken([](Plan& plan) { plan.global_batch_size = 6; }), "");
  EXPECT_EQ(Broken([](Plan& plan) { plan.global_batch_size = 7; }), "")
      << "shares of 3 and 4";
  const std::string other =
      "plan: global_batch_size is not dp x micro_batches x micro_batch_size, "
      "of "
      "which the last micro-batch may be smaller";
  for (const std::int64_t size : {9, 4, 10}) {
    EXPECT_EQ(Broken([&](Plan& plan) { plan.global_batch_size = size; }), other)
        << size;
  }
  EXPECT_EQ(Broken([](Plan& plan) {
              plan.micro_batches = 1;
              plan.micro_batch_size = 5;
            }),
            other);
}

TEST(PlanCheckTest, SharesMayDifferByOneSample) {
  Plan plan = SmallPlan();
  plan.global_batch_size = 7;
  EXPECT_TRUE(plan.Check().ok());
  EXPECT_EQ(plan.last_micro_batch_size(), 2) << "of a share of 4";
  EXPECT_EQ(plan.ToString().substr(0, 75),
            "mesh dp=2 pp=2, global batch 7 over 2, each 2 micro-batches of up "
            "to 2, 1 t");
  PlanOptions options;
  options.mesh = Mesh(3);
  EXPECT_EQ(options.MicroBatchSize(), 22) << "of 64";
}

TEST(PlanCheckTest, PartsThatDoNotFit) {
  EXPECT_EQ(Broken([](Plan& plan) { plan.micro_batches = 3; }),
            "plan: global_batch_size is not dp x micro_batches x "
            "micro_batch_size, of which the last micro-batch may be smaller");
  EXPECT_EQ(Broken([](Plan& plan) { plan.ranks.pop_back(); }),
            "plan: ranks has 1 entries, pp is 2");
  EXPECT_EQ(Broken([](Plan& plan) { plan.cuts.clear(); }),
            "plan: cuts has 0 entries for 2 stages");
  EXPECT_EQ(Broken([](Plan& plan) { plan.loss_scale = INFINITY; }),
            "plan: loss_scale is not a number above 0");
  EXPECT_EQ(
      Broken([](Plan& plan) { plan.dynamic_loss_scale.emplace().min = 2; }),
      "plan: loss_scale_min is not above 0 and at most loss_scale");
  EXPECT_EQ(Broken([](Plan& plan) { plan.dynamic_loss_scale.emplace(); }),
            "plan: loss_scale_growth_interval is set, but updates do not wait "
            "for all buckets");
  EXPECT_EQ(Broken([](Plan& plan) { plan.reduction_dtype = nn::DType::kI64; }),
            "plan: reduction_dtype is no floating type");
  EXPECT_EQ(Broken([](Plan& plan) { plan.cuts[0].clear(); }),
            "plan: cuts[0] is empty");
  EXPECT_EQ(Broken([](Plan& plan) { plan.stages[1].place.pp = 0; }),
            "plan: stages: placement: stage 1 is chunk 0 of pp 0 where chunk 1 "
            "is next");
  EXPECT_EQ(Broken([](Plan& plan) { plan.stages[1].input = {1}; }),
            "plan: stages[1].input is not the output of the stage before");
  EXPECT_EQ(Broken([](Plan& plan) { plan.stages[0].buckets[0][0] = 9; }),
            "plan: stages[0].buckets[0] has parameter 9 of 2");
  EXPECT_EQ(Broken([](Plan& plan) { plan.stages[0].buckets[1][0] = 1; }),
            "plan: stages[0].buckets[1] has parameter 1 a second time");
  EXPECT_EQ(Broken([](Plan& plan) { plan.stages[1].frozen.clear(); }),
            "plan: stages[1] has parameter 1 in no bucket");
  EXPECT_EQ(Broken([](Plan& plan) { plan.stages[0].buckets.emplace_back(); }),
            "plan: stages[0].buckets[2] is empty");
  EXPECT_EQ(Broken([](Plan& plan) {
              plan.stages[1].parameters[1] = plan.stages[1].parameters[0];
            }),
            "plan: stages[1].parameters[1] has the name of another one");
  EXPECT_EQ(Broken([](Plan& plan) { plan.ranks[1].reduce_inline = true; }),
            "plan: ranks[1].reduce_inline is for whole replicas only");
  EXPECT_EQ(Broken([](Plan& plan) { plan.ranks[1] = plan.ranks[0]; }),
            "plan: ranks[1].train: has other buckets than its stages");
  EXPECT_EQ(Broken([](Plan& plan) {
              plan.ranks[0].train =
                  *ParseTable("F0 F1 LR B0 B1 AR0 UP0 AR1 UP1");
            }),
            "plan: ranks[0].train: SA0 is missing");
  EXPECT_EQ(Broken([](Plan& plan) { plan.ranks[0].train.actions.pop_back(); }),
            "plan: ranks[0].train: schedule: AR1 has no update; add it");
  EXPECT_EQ(
      Broken([](Plan& plan) {
        plan.ranks[0].train.actions[2].needs.push_back({SignalKind::kDone, 1});
      }),
      "plan: ranks[0].train: has needs that its text does not say");
  EXPECT_EQ(Broken([](Plan& plan) {
              plan.ranks[0].evaluate =
                  *ParseTable("F0 SA0 RG0 AR0 UP0 AR1 UP1");
            }),
            "plan: ranks[0].evaluate: schedule: AR0 is for training, and the "
            "table has no backward; remove it, or add one");
}

TEST(PlanCheckTest, RoundsThatDoNotFit) {
  const auto add_round = [](int pp, int bucket, Plan& plan) {
    std::string text = plan.ranks[pp].train.ToString();
    const std::string first = absl::StrCat("AR", bucket);
    text.replace(text.find(first), first.size(),
                 absl::StrCat(first, " ", first, ".1"));
    plan.ranks[pp].train = *ParseTable(text);
  };
  const auto add_all = [&](Plan& plan) {
    plan.hook = "two";
    for (const auto& [pp, bucket] : {std::pair(0, 0), {0, 1}, {1, 0}}) {
      add_round(pp, bucket, plan);
    }
  };
  EXPECT_EQ(Broken(add_all), "");
  EXPECT_EQ(Broken([&](Plan& plan) {
              add_all(plan);
              plan.hook.clear();
            }),
            "plan: ranks[0].train: has reductions of 2 rounds, but the plan "
            "has no hook");
  EXPECT_EQ(Broken([&](Plan& plan) {
              plan.hook = "two";
              add_round(0, 0, plan);
            }),
            "plan: ranks[0].train: has another number of rounds than 2 for "
            "bucket 1");
  EXPECT_EQ(Broken([&](Plan& plan) {
              plan.hook = "two";
              add_round(1, 0, plan);
            }),
            "plan: ranks[0].train: has another number of rounds than 2 for "
            "bucket 0");
}

// Returns the error of Check for a plan with skip connections and one change.
std::string BrokenSkips(const std::function<void(Plan&)>& change) {
  Plan plan = SkipPlanOf({3, 4, 5});
  EXPECT_EQ(plan.Check(), absl::OkStatus());
  change(plan);
  return std::string(plan.Check().message());
}

TEST(PlanCheckTest, SkipConnectionsThatDoNotFit) {
  const auto swap = [](Plan& plan) {
    std::swap(plan.stages[3].skips[0], plan.stages[3].skips[1]);
  };
  EXPECT_EQ(
      BrokenSkips(swap),
      "plan: stages[3].skips has \"deep\" in another order than the stage "
      "before");
  EXPECT_EQ(
      BrokenSkips([](Plan& plan) {
        plan.stages[2].skips[0].spec.dtype = nn::DType::kI64;
      }),
      "plan: stages[2].skips has \"deep\" of another shape than the stage "
      "before");
  EXPECT_EQ(BrokenSkips([](Plan& plan) {
              plan.stages[2].skips.erase(plan.stages[2].skips.begin());
            }),
            "plan: stages[3].skips has \"deep\", which a stage before has "
            "popped");
  EXPECT_EQ(BrokenSkips([](Plan& plan) {
              plan.stages[1].skips.push_back(plan.stages[1].skips[0]);
            }),
            "plan: stages[1].skips has \"deep\" twice");
  EXPECT_EQ(
      BrokenSkips([](Plan& plan) { plan.stages[2].skips[1].name.clear(); }),
      "plan: stages[2].skips has one without a name");
  EXPECT_EQ(BrokenSkips([](Plan& plan) {
              plan.stages[0].skips = plan.stages[1].skips;
            }),
            "plan: stages[0].skips or more_inputs are there, before any stage");
}

}  // namespace
}  // namespace troupe::pipeline
