#include "pipeline/parameter_plan.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "pipeline/plan_groups.h"
#include "pipeline/plan_json.h"
#include "pipeline/table/table_cursor.h"

namespace troupe::pipeline {
namespace {

// Parameters p0, p1, ... of `elems` elements.
class ParameterPlanTest : public testing::Test {
 protected:
  void Declare(const std::vector<std::int64_t>& elems) {
    list_.resize(elems.size());
    for (std::size_t i = 0; i < elems.size(); ++i) {
      list_[i].name = absl::StrCat("p", i);
      list_[i].shape = nn::Shape({elems[i]});
    }
  }
  std::vector<nn::Parameter*> parameters() {
    std::vector<nn::Parameter*> all;
    for (nn::Parameter& parameter : list_) all.push_back(&parameter);
    return all;
  }
  absl::StatusOr<Plan> MakePlan() {
    return MakeParameterPlan(options_, parameters(), nn::Device());
  }
  static std::string BucketsOf(const StagePlan& stage) {
    return absl::StrJoin(stage.buckets, " | ", [](auto* out, const auto& b) {
      absl::StrAppend(out, absl::StrJoin(b, " "));
    });
  }

  ParameterPlanOptions options_;
  std::vector<nn::Parameter> list_;
};

TEST_F(ParameterPlanTest, TheParameterDeclaredLastTravelsFirst) {
  Declare({1, 1, 1, 1});
  options_.buckets = {/*first_bucket_bytes=*/4, /*bucket_bytes=*/8};
  EXPECT_EQ(BucketsOf(MakePlan()->stages[0]), "3 | 2 1 | 0");
}

TEST_F(ParameterPlanTest, TheLastOfTheLimitsRepeats) {
  Declare({1, 1, 1, 1, 1, 1, 1});
  options_.bucket_limits = {4, 12, 8};
  EXPECT_EQ(BucketsOf(MakePlan()->stages[0]), "6 | 5 4 3 | 2 1 | 0");
  options_.bucket_limits = {4};
  EXPECT_EQ(BucketsOf(MakePlan()->stages[0]), "6 | 5 | 4 | 3 | 2 | 1 | 0");
}

TEST_F(ParameterPlanTest, DelayedParametersHaveTheLastBucket) {
  Declare({1, 1, 1, 1, 1});
  list_[1].dtype = nn::DType::kBF16;
  options_.buckets = {/*first_bucket_bytes=*/4, /*bucket_bytes=*/8};
  options_.delayed = {"p4", "p1", "p2"};
  const Plan plan = MakePlan().value();
  EXPECT_EQ(BucketsOf(plan.stages[0]), "3 | 0 | 4 2 | 1");
  EXPECT_EQ(DelayedBuckets(plan, options_.delayed), 2);
  EXPECT_EQ(DelayedBuckets(plan, {}), 0);
}

TEST_F(ParameterPlanTest, ADelayedParameterThatDoesNotExistIsNamed) {
  Declare({1, 1});
  list_[0].name = "fc.weight";
  list_[1].name = "conv.weight";
  options_.delayed = {"fc.wieght"};
  EXPECT_EQ(MakePlan().status().message(),
            "the delayed parameter \"fc.wieght\" is none that the model "
            "trains; the nearest are fc.weight, conv.weight");
  list_[0].requires_grad = false;
  options_.delayed = {"fc.weight"};
  EXPECT_FALSE(MakePlan().ok());
}

TEST_F(ParameterPlanTest, FrozenParametersAreInNoBucket) {
  Declare({1, 1, 1});
  list_[1].requires_grad = false;
  const Plan plan = MakePlan().value();
  EXPECT_EQ(BucketsOf(plan.stages[0]), "2 0");
  EXPECT_EQ(plan.stages[0].frozen, std::vector<int>({1}));
}

TEST_F(ParameterPlanTest, ABucketHasOneDtypeAndTheSizeOfItsGradients) {
  Declare({2, 2, 2});
  list_[2].dtype = nn::DType::kBF16;
  options_.buckets = {/*first_bucket_bytes=*/16, /*bucket_bytes=*/16};
  EXPECT_EQ(BucketsOf(MakePlan()->stages[0]), "2 | 1 0");
  options_.grad_dtype = nn::DType::kF64;
  EXPECT_EQ(BucketsOf(MakePlan()->stages[0]), "2 | 1 | 0");
}

TEST_F(ParameterPlanTest, ItHasTheGroupsOfAJobsReplicas) {
  Declare({1});
  options_.mesh = Mesh(/*dp=*/2);
  std::string groups;
  for (const PlanGroup& group : GroupsOf(MakePlan().value())) {
    absl::StrAppend(&groups, group.ToString(), "\n");
  }
  EXPECT_EQ(groups, "all ranks: 0 1\nreplicas: 0 1\n");
}

TEST_F(ParameterPlanTest, AnotherModelHasAnotherHash) {
  Declare({1, 2});
  const std::uint64_t hash = PlanHash(MakePlan().value());
  EXPECT_EQ(PlanHash(MakePlan().value()), hash);
  list_[1].name = "other";
  EXPECT_NE(PlanHash(MakePlan().value()), hash);
}

TEST_F(ParameterPlanTest, SmallGradientsAreReducedInline) {
  Declare({4});
  EXPECT_FALSE(MakePlan()->ranks[0].reduce_inline);
  options_.inline_bytes = 16;
  EXPECT_TRUE(MakePlan()->ranks[0].reduce_inline);
}

TEST_F(ParameterPlanTest, RefusesStagesAndNamesThatAreThereTwice) {
  Declare({1, 1});
  list_[1].name = "p0";
  EXPECT_EQ(MakePlan().status().message(),
            "two parameters have the name \"p0\"; list each parameter of the "
            "model once");
  options_.mesh = Mesh(/*dp=*/1, /*pp=*/2);
  EXPECT_EQ(MakePlan().status().message(),
            "a plan of parameters is for replicas of a whole model, and the "
            "mesh has 2 ranks with dp = 1; use a mesh of dp alone");
}

TEST(LoopTableTest, HasWhatFollowsTheGradients) {
  EXPECT_EQ(LoopTable(2, {}).ToString(), "AR0 AR1 UP0 UP1");
  LoopTableOptions options;
  options.reduce_loss = true;
  EXPECT_EQ(LoopTable(1, options).ToString(), "LR AR0 UP0");
  options.updates = false;
  EXPECT_EQ(LoopTable(1, options).ToString(), "LR AR0");
}

TEST(LoopTableTest, ReducesInAnyOrder) {
  LoopTableOptions options;
  options.order = {2, 0, 1};
  EXPECT_EQ(LoopTable(3, options).ToString(), "AR2 AR0 AR1 UP0 UP1 UP2");
}

// Returns the actions that may run, by position, until none may.
std::string Runs(TableCursor& cursor) {
  std::string text;
  for (int next; (next = cursor.NextRunnable(/*busy=*/true)) >= 0;) {
    cursor.Start(next);
    cursor.Finish(next);
    const Action& action = cursor.table().actions[next];
    if (action.kind == ActionKind::kReduceLoss) {
      cursor.Give({SignalKind::kLossReduced});
    } else if (action.kind == ActionKind::kReduceBucket) {
      cursor.Give({SignalKind::kBucketReduced, action.index});
    }
    absl::StrAppend(&text, text.empty() ? "" : " ", action.ToString());
  }
  return text;
}

void GiveReadyAndReleased(TableCursor& cursor, int bucket) {
  cursor.Give({SignalKind::kBucketReady, bucket});
  cursor.Give({SignalKind::kBucketReleased, bucket});
}

TEST(LoopTableTest, UpdatesWaitForTheProgram) {
  TableCursor cursor(LoopTable(2, {}));
  EXPECT_EQ(Runs(cursor), "");
  GiveReadyAndReleased(cursor, 0);
  EXPECT_EQ(Runs(cursor), "AR0");
  cursor.Give({SignalKind::kStepAsked});
  EXPECT_EQ(Runs(cursor), "UP0");
  GiveReadyAndReleased(cursor, 1);
  EXPECT_EQ(Runs(cursor), "AR1 UP1");
  EXPECT_TRUE(cursor.complete());
}

TEST(LoopTableTest, UpdatesWaitForLossAndAllBucketsIfTheyNeedThem) {
  LoopTableOptions options;
  options.reduce_loss = options.update_needs_all_buckets = true;
  TableCursor cursor(LoopTable(2, options));
  cursor.Give({SignalKind::kStepAsked});
  GiveReadyAndReleased(cursor, 0);
  EXPECT_EQ(Runs(cursor), "LR AR0");
  GiveReadyAndReleased(cursor, 1);
  EXPECT_EQ(Runs(cursor), "AR1 UP0 UP1");
}

}  // namespace
}  // namespace troupe::pipeline
