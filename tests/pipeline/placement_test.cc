#include "pipeline/table/placement.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::pipeline {
namespace {

TEST(PlacementTest, LoopedStagesGoRound) {
  const Placement looped = LoopedPlacement(/*pp=*/4, /*chunks=*/2);
  ASSERT_EQ(looped.size(), 8u);
  EXPECT_EQ(looped[5], (StagePlace{/*pp=*/1, /*chunk=*/1}));
  EXPECT_EQ(StagesAt(looped, 1), (std::vector<int>{1, 5}));
  EXPECT_EQ(CheckPlacement(looped, 4), absl::OkStatus());
  EXPECT_EQ(LoopedPlacement(3, 1), (Placement{{0, 0}, {1, 0}, {2, 0}}));
}

TEST(PlacementTest, AVIsOnlyOtherData) {
  const Placement v = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
  EXPECT_EQ(CheckPlacement(v, 2), absl::OkStatus());
  EXPECT_EQ(StagesAt(v, 0), (std::vector<int>{0, 3}));
  EXPECT_EQ(StagesAt(v, 1), (std::vector<int>{1, 2}));
  const std::vector<ChunkEnds> ends = EndsAt(v, 0);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_TRUE(ends[0].first_stage);
  EXPECT_FALSE(ends[0].last_stage);
  EXPECT_FALSE(ends[1].first_stage);
  EXPECT_TRUE(ends[1].last_stage);
  for (const ChunkEnds& middle : EndsAt(v, 1)) {
    EXPECT_FALSE(middle.first_stage);
    EXPECT_FALSE(middle.last_stage);
  }
}

TEST(PlacementTest, PlacesThatCannotBe) {
  const auto error = [](const Placement& placement, int pp) {
    return std::string(CheckPlacement(placement, pp).message());
  };
  EXPECT_EQ(error({{0, 0}, {2, 0}}, 2),
            "placement: stage 1 must lie at pp 0 to 1, not 2");
  EXPECT_EQ(error({{-1, 0}}, 1),
            "placement: stage 0 must lie at pp 0 to 0, not -1");
  EXPECT_EQ(error({{0, 0}, {0, 0}}, 1),
            "placement: stage 1 is chunk 0 of pp 0 where chunk 1 is next");
  EXPECT_EQ(error({{0, 1}, {0, 0}}, 1),
            "placement: stage 0 is chunk 1 of pp 0 where chunk 0 is next");
  EXPECT_EQ(error({{0, 0}}, 2),
            "placement: pp 1 has no stage; give it one, or lower pp");
}

}  // namespace
}  // namespace troupe::pipeline
