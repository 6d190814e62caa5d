#include "pipeline/table/join_backwards.h"

#include "gtest/gtest.h"

namespace troupe::pipeline {
namespace {

std::string Joined(const char* text, int chunk) {
  return JoinBackwards(
             *ParseTable(text),
             [&](const Action& inputs) { return inputs.chunk == chunk; })
      .ToString();
}

TEST(JoinBackwardsTest, NeighboursAlone) {
  EXPECT_EQ(Joined("F0 F1 I0 W0 I1 W1", 0), "F0 F1 B0 B1");
  EXPECT_EQ(Joined("F0 F1 I0 I1 W0 W1", 0), "F0 F1 I0 I1 W0 W1");
  EXPECT_EQ(Joined("F0 I0 F1 W0 I1 W1", 0), "F0 I0 F1 W0 B1");
  EXPECT_EQ(Joined("F0 B0", 0), "F0 B0");
  EXPECT_EQ(Joined("0F0 1F0 1I0 1W0 0I0 0W0", 0), "0F0 1F0 1I0 1W0 0B0");
  EXPECT_EQ(Joined("0F0 1F0 1I0 1W0 0I0 0W0", 2), "0F0 1F0 1I0 1W0 0I0 0W0");
}

// Needs follow from the joined table.
TEST(JoinBackwardsTest, IsATableAsOthers) {
  EXPECT_EQ(
      JoinBackwards(*ParseTable("F0 F1 I0 W0 I1 W1"),
                    [](const Action& inputs) { return inputs.index > 0; }),
      *ParseTable("F0 F1 I0 W0 B1"));
}

}  // namespace
}  // namespace troupe::pipeline
