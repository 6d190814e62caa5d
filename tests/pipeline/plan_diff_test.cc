#include "pipeline/plan_diff.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/pipeline/plan_fixture.h"

namespace troupe::pipeline {
namespace {

using Lines = std::vector<std::string>;

TEST(PlanDiffTest, EqualPlansDoNotDiffer) {
  EXPECT_EQ(Diff(SmallPlan(), SmallPlan()), Lines{});
}

TEST(PlanDiffTest, NamesFieldsAndBothValues) {
  Plan other = SmallPlan();
  other.inline_bytes = 4096;
  other.kernels = "cpu:0, avx2";
  other.stages[0].buckets = {{0}, {1}};
  other.stages[1].parameter_elems[1] = 3;
  EXPECT_EQ(
      Diff(SmallPlan(), other),
      (Lines{"inline_bytes: 0, 4096",
             "kernels: \"cpu:0, avx512\", \"cpu:0, avx2\"",
             "stages[0].buckets[0][0]: 1, 0", "stages[0].buckets[1][0]: 0, 1",
             "stages[1].parameters[2.bias].elems: 2, 3"}));
}

TEST(PlanDiffTest, ListsOfOtherLengthsAreShownWhole) {
  Plan other = SmallPlan();
  other.stages[0].buckets = {{1, 0}};
  other.ranks[0].train = *ParseTable("F0 SA0 F1 SA1 LR RG0 B0 RG1 B1 AR0 UP0");
  EXPECT_EQ(Diff(SmallPlan(), other),
            (Lines{"stages[0].buckets: [[1],[0]], [[1,0]]",
                   "ranks[0].train: \"F0 SA0 F1 SA1 LR RG0 B0 RG1 B1 AR0 UP0 "
                   "AR1 UP1\", \"F0 SA0 F1 SA1 LR RG0 B0 RG1 B1 AR0 UP0\""}));
}

TEST(PlanDiffTest, AxesHaveNames) {
  PlanOptions wide = SmallOptions();
  wide.mesh = Mesh(/*dp=*/4, /*pp=*/2);
  const Lines lines = Diff(SmallPlan(), SmallPlan(wide));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0], "mesh[dp].size: 2, 4");
}

TEST(PlanDiffTest, LongValuesAreShownWhereTheyDiffer) {
  Plan a = SmallPlan(), b = SmallPlan();
  a.kernels = std::string(500, 'a') + "x" + std::string(500, 'a');
  b.kernels = std::string(500, 'a') + "y" + std::string(500, 'a');
  const Lines lines = Diff(a, b);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_LT(lines[0].size(), 160u);
  EXPECT_NE(lines[0].find("aaaxaaa"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("aaayaaa"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace troupe::pipeline
