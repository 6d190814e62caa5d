#include "data/images/crop.h"

#include "gtest/gtest.h"

namespace troupe::data {
namespace {

CropRegion Center(std::int64_t resize, std::int64_t size, std::int64_t height,
                  std::int64_t width) {
  return ResizedCenterCrop(resize, size)->RegionOf({}, height, width);
}

// Numbers of torchvision's Resize and CenterCrop.
TEST(CropTest, CenterCrop) {
  const CropRegion wide = Center(256, 224, 375, 500);
  EXPECT_EQ(wide.box, (Box{0, 0, 375, 500}));
  EXPECT_EQ(wide.resized_height, 256);
  EXPECT_EQ(wide.resized_width, 341);
  EXPECT_EQ(wide.window, (Box{16, 58, 224, 224}));  // 58.5 rounds to even
  const CropRegion tall = Center(8, 8, 30, 20);
  EXPECT_EQ(tall.resized_height, 12);
  EXPECT_EQ(tall.resized_width, 8);
  EXPECT_EQ(tall.window, (Box{2, 0, 8, 8}));
}

TEST(CropTest, RandomCropsAreWhatTorchvisionAllows) {
  const CropPtr crop = RandomResizedCrop(64, 0.08, /*seed=*/3);
  double least = 1, most = 0;
  for (std::int64_t index = 0; index < 3000; ++index) {
    const CropRegion region = crop->RegionOf({0, index}, 120, 160);
    const Box& box = region.box;
    EXPECT_GE(box.top, 0);
    EXPECT_GE(box.left, 0);
    EXPECT_LE(box.top + box.height, 120);
    EXPECT_LE(box.left + box.width, 160);
    EXPECT_EQ(region.window, (Box{0, 0, 64, 64}));
    EXPECT_EQ(region.resized_height, 64);
    const double ratio = double(box.width) / double(box.height);
    EXPECT_GT(ratio, 0.72);
    EXPECT_LT(ratio, 1.39);
    const double area = double(box.width * box.height) / (120 * 160);
    least = std::min(least, area);
    most = std::max(most, area);
  }
  EXPECT_GT(least, 0.075);
  EXPECT_LT(least, 0.1);
  EXPECT_GT(most, 0.9);
}

TEST(CropTest, ACropFollowsFromSeedEpochAndSample) {
  const auto box = [](std::uint64_t seed, const SampleKey& key) {
    return RandomResizedCrop(8, 0.08, seed)->RegionOf(key, 100, 90).box;
  };
  EXPECT_EQ(box(1, {2, 3}), box(1, {2, 3}));
  EXPECT_FALSE(box(1, {2, 3}) == box(0, {2, 3}));
  EXPECT_FALSE(box(1, {2, 3}) == box(1, {3, 3}));
  EXPECT_FALSE(box(1, {2, 3}) == box(1, {2, 4}));
}

TEST(CropTest, WhereNoBoxFitsTheMiddleIsTaken) {
  const CropPtr crop = RandomResizedCrop(8, 1.0, /*seed=*/0);
  EXPECT_EQ(crop->RegionOf({}, 10, 1000).box, (Box{0, 493, 10, 13}));
  EXPECT_EQ(crop->RegionOf({}, 1000, 10).box, (Box{493, 0, 13, 10}));
  EXPECT_EQ(crop->RegionOf({}, 1, 1).box, (Box{0, 0, 1, 1}));
}

}  // namespace
}  // namespace troupe::data
