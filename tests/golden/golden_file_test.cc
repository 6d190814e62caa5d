#include "tests/golden/golden_file.h"

#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

TEST(GoldenFile, HoldsCasesAndValues) {
  for (const char* name : {"ops_f32", "ops_f64"}) {
    auto golden = GoldenFile::Open(name);
    ASSERT_TRUE(golden.ok()) << golden.status();
    EXPECT_EQ(golden->spec()["cases"][0]["name"], "linear");
    EXPECT_EQ(golden->Values("linear/y").size(), 35u);
    EXPECT_FALSE(golden->Has("linear_no_bias/db"));
  }
  EXPECT_EQ(GoldenFile::Open("nothing").status().code(),
            absl::StatusCode::kNotFound);
}

// relu's output shows that both sides compute the same inputs.
TEST(GoldenInput, IsTheFormulaOfTheScript) {
  auto golden = GoldenFile::Open("ops_f64");
  ASSERT_TRUE(golden.ok()) << golden.status();
  std::vector<double> x = GoldenInput("relu/x", 50, 1);
  for (double& value : x) value = value > 0 ? value : 0;
  EXPECT_EQ(x, golden->Values("relu/y"));
}

TEST(GoldenLabels, LeavesOutEveryFifthWhenAsked) {
  const std::vector<double> labels = GoldenLabels("any", 10, 3, true);
  EXPECT_EQ(labels[4], -100);
  EXPECT_EQ(labels[9], -100);
  for (int i : {0, 1, 2, 3, 5}) EXPECT_LT(labels[i], 3);
  EXPECT_GE(GoldenLabels("any", 10, 3, false)[4], 0);
}

}  // namespace
}  // namespace troupe::nn
