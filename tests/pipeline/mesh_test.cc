#include "pipeline/mesh.h"

#include <vector>

#include "gtest/gtest.h"

namespace troupe::pipeline {
namespace {

TEST(MeshTest, DpVariesFasterThanPp) {
  const Mesh mesh(/*dp=*/3, /*pp=*/2);
  //            dp 0  1  2
  //   stage 0:    0  1  2
  //   stage 1:    3  4  5
  EXPECT_EQ(mesh.size(), 6);
  EXPECT_EQ(mesh.RankOf({/*dp=*/0, /*pp=*/0}), 0);
  EXPECT_EQ(mesh.RankOf({/*dp=*/2, /*pp=*/0}), 2);
  EXPECT_EQ(mesh.RankOf({/*dp=*/0, /*pp=*/1}), 3);
  EXPECT_EQ(mesh.RankOf({/*dp=*/1, /*pp=*/1}), 4);
}

TEST(MeshTest, CoordinatesAndRanksAreInverse) {
  for (int dp : {1, 2, 3, 8}) {
    for (int pp : {1, 2, 5}) {
      const Mesh mesh(dp, pp);
      for (int rank = 0; rank < mesh.size(); ++rank) {
        EXPECT_EQ(mesh.RankOf(mesh.CoordsOf(rank)), rank) << mesh.ToString();
      }
    }
  }
}

TEST(MeshTest, ADpGroupHoldsTheRanksOfOneStage) {
  const Mesh mesh(/*dp=*/3, /*pp=*/2);
  const std::vector<int> first = {0, 1, 2}, second = {3, 4, 5};
  for (int rank : first) EXPECT_EQ(mesh.DpGroup(rank), first);
  for (int rank : second) EXPECT_EQ(mesh.DpGroup(rank), second);
  EXPECT_EQ(Mesh(1, 3).DpGroup(1), std::vector<int>{1});
}

TEST(MeshTest, OneStageIsFirstAndLast) {
  EXPECT_TRUE(Mesh(2).IsFirstStage(1));
  EXPECT_TRUE(Mesh(2).IsLastStage(1));
  const Mesh mesh(/*dp=*/1, /*pp=*/3);
  EXPECT_TRUE(mesh.IsFirstStage(0));
  EXPECT_FALSE(mesh.IsLastStage(0));
  EXPECT_FALSE(mesh.IsFirstStage(1));
  EXPECT_FALSE(mesh.IsLastStage(1));
  EXPECT_TRUE(mesh.IsLastStage(2));
}

TEST(MeshTest, PrintsItsAxes) {
  EXPECT_EQ(Mesh().ToString(), "dp=1 pp=1");
  EXPECT_EQ(Mesh(4, 2).ToString(), "dp=4 pp=2");
}

}  // namespace
}  // namespace troupe::pipeline
