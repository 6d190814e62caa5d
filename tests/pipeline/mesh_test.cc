#include "pipeline/mesh.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
  EXPECT_EQ(Mesh::Create({{"tp", 1}, {"dp", 2}, {"pp", 1}})->ToString(),
            "dp=2 pp=1");
  EXPECT_EQ(
      Mesh::Create({{"tp", 2}, {"cp", 3}, {"dp", 4}, {"ep", 1}})->ToString(),
      "tp=2 cp=3 dp=4 ep=1");
}

// The usage of mesh.h.
TEST(MeshTest, TheExampleOfTheHeader) {
  const Mesh mesh(/*dp=*/2, /*pp=*/2);
  EXPECT_EQ(mesh.CoordOf(3, "pp"), 1);
  EXPECT_EQ(mesh.Group(3, "dp"), (std::vector<int>{2, 3}));
  EXPECT_EQ(mesh.RankOf({/*dp=*/0, /*pp=*/1}), 2);
  const Mesh cube = Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 2}}).value();
  EXPECT_EQ(cube.Group(5, "pp"), (std::vector<int>{1, 5}));
  EXPECT_EQ(cube.RankAt({/*tp=*/1, /*dp=*/0, /*pp=*/1}), 5);
  EXPECT_EQ(cube.Group(5, GroupId::kDpPp), (std::vector<int>{1, 3, 5, 7}));
  EXPECT_EQ(cube.SizeOf("ep"), 1);
}

TEST(MeshTest, TpIsListedWhereThereAreSeveral) {
  EXPECT_EQ(Mesh(2, 3, 1), Mesh(2, 3));
  const Mesh mesh(/*dp=*/2, /*pp=*/1, /*tp=*/2);
  EXPECT_EQ(mesh, *Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 1}}));
  const Mesh wide = *Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 1}, {"ep", 2}});
  EXPECT_EQ(wide.Group(6, GroupId::kTpDpPp), (std::vector<int>{4, 5, 6, 7}));
}

TEST(MeshTest, AnAxisThatIsNotThereHasOneRank) {
  const Mesh mesh = Mesh::Create({{"dp", 3}}).value();
  EXPECT_EQ(mesh.pp(), 1);
  EXPECT_EQ(mesh.tp(), 1);
  EXPECT_EQ(mesh.Group(2, "pp"), std::vector<int>{2});
  EXPECT_EQ(mesh.Group(2, "ep"), std::vector<int>{2});
  EXPECT_EQ(mesh.CoordOf(2, "pp"), 0);
  EXPECT_EQ(mesh.CoordOf(2, "ep"), 0);
  EXPECT_EQ(mesh.AxisNumber("pp"), kPpAxis);
  EXPECT_EQ(mesh.AxisNumber("ep"), -1);
  EXPECT_EQ(Mesh::Create({})->size(), 1);
}

TEST(MeshTest, AxesVaryInTheOrderOfTheList) {
  const Mesh mesh =
      Mesh::Create({{"pp", 2}, {"cp", 3}, {"dp", 2}, {"ep", 2}}).value();
  EXPECT_EQ(mesh.size(), 24);
  // tp, dp and pp have the same numbers at any place in the list.
  EXPECT_EQ(mesh.AxisNumber("dp"), kDpAxis);
  EXPECT_EQ(mesh.AxisNumber("cp"), 3);
  EXPECT_EQ(mesh.AxisNumber("ep"), 4);
  EXPECT_EQ(mesh.axis_count(), 5);
  const int rank = mesh.RankAt({/*pp=*/1, /*cp=*/2, /*dp=*/0, /*ep=*/1});
  EXPECT_EQ(rank, 1 + 2 * 2 + 0 + 12);
  EXPECT_EQ(mesh.CoordOf(rank, "pp"), 1);
  EXPECT_EQ(mesh.CoordOf(rank, "cp"), 2);
  EXPECT_EQ(mesh.CoordOf(rank, "dp"), 0);
  EXPECT_EQ(mesh.CoordOf(rank, "ep"), 1);
  EXPECT_EQ(mesh.Group(rank, "cp"), (std::vector<int>{13, 15, 17}));
}

// Along each axis, the groups of all ranks are a partition, and a rank stands
// at its coordinate.
TEST(MeshTest, EveryRankStandsAtItsCoordinateInEachGroup) {
  const Mesh mesh = Mesh::Create({{"tp", 2}, {"dp", 3}, {"pp", 4}}).value();
  for (int rank = 0; rank < mesh.size(); ++rank) {
    EXPECT_EQ(mesh.RankOf(mesh.CoordsOf(rank)), rank);
    for (int axis = 0; axis < mesh.axis_count(); ++axis) {
      const std::vector<int> group = mesh.Group(rank, axis);
      EXPECT_EQ(group[mesh.CoordOf(rank, axis)], rank);
      for (int other : group) EXPECT_EQ(mesh.Group(other, axis), group);
      EXPECT_EQ(mesh.Group(rank, GroupAlong(axis)), group);
    }
    // The same tp: every second rank.
    const std::vector<int> same_tp = mesh.Group(rank, GroupId::kDpPp);
    ASSERT_EQ(same_tp.size(), 12u);
    for (int i = 0; i < 12; ++i) EXPECT_EQ(same_tp[i], 2 * i + rank % 2);
    EXPECT_EQ(mesh.IsFirstCopy(rank), rank % 2 == 0);
  }
}

std::string ErrorOf(std::vector<Axis> axes) {
  const absl::Status status = Mesh::Create(std::move(axes)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(MeshTest, AxesThatCannotBe) {
  const char* hint =
      "is no name of an axis; write up to 16 lower-case letters, digits and _, "
      "such as \"dp\", and not \"world\"";
  for (const char* name :
       {"", "DP", "1d", "a-b", "world", "abcdefghijklmnopq"}) {
    EXPECT_EQ(ErrorOf({{"dp", 2}, {name, 2}}),
              absl::StrCat("mesh: \"", name, "\" ", hint));
  }
  EXPECT_EQ(ErrorOf({{"dp", 2}, {"dp", 1}}),
            "mesh: axis dp is there twice; name each once");
  EXPECT_EQ(ErrorOf({{"dp", 2}, {"pp", 0}}),
            "mesh: dp and pp must be at least 1, got dp=2 pp=0");
  EXPECT_EQ(ErrorOf({{"tp", 1}, {"dp", -3}, {"pp", 2}}),
            "mesh: tp, dp and pp must be at least 1, got dp=-3 pp=2");
  EXPECT_EQ(ErrorOf({{"dp", 1 << 20}, {"pp", 1 << 30}}),
            "mesh: dp=1048576 pp=1073741824 has more than 1048576 ranks; "
            "make it smaller");
  EXPECT_EQ(ErrorOf(std::vector<Axis>(9, {"dp", 1})),
            "mesh: 9 axes; must be at most 8");
  EXPECT_FALSE(Mesh(0).Check().ok());
  EXPECT_EQ(Mesh(0).ToString(), "dp=0 pp=1");
}

}  // namespace
}  // namespace troupe::pipeline
