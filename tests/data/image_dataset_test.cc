#include "data/image_dataset.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;

// Three images [2, 2, C]; image i has the bytes from 50 * i on.
ByteImages Images(std::int64_t channels) {
  ByteImages images;
  images.shape = {2, 2, channels};
  images.labels = {1, 0, 2};
  images.num_classes = 3;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4 * channels; ++j) {
      images.pixels.push_back(static_cast<std::uint8_t>(50 * i + j));
    }
  }
  return images;
}

TEST(ImageDatasetTest, GathersBytesAsFloats) {
  const auto dataset = MakeImageDataset(Images(1), {});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const Filled batch = FillFrom(**dataset, {2, 0});
  ASSERT_TRUE(batch.status.ok()) << batch.status;
  EXPECT_THAT(ToVector<float>(batch.inputs),
              ElementsAre(100, 101, 102, 103, 0, 1, 2, 3));
  EXPECT_THAT(ToVector<std::int64_t>(batch.targets), ElementsAre(2, 1));
}

TEST(ImageDatasetTest, TheTableHasTheBitsOfTheTransforms) {
  const Transforms pointwise = {
      ToFloat(), Normalize({0.1f, 0.2f, 0.3f}, {0.3f, 0.7f, 1.1f})};
  const auto folded = *MakeImageDataset(Images(3), pointwise);
  const auto plain =
      *MakeTransformedDataset(*MakeImageDataset(Images(3), {}), pointwise);
  EXPECT_TRUE(BitEqual(FillFrom(*folded, {0, 1, 2}).inputs,
                       FillFrom(*plain, {0, 1, 2}).inputs));
}

TEST(ImageDatasetTest, KeepsTheOrderOfTransforms) {
  const Transforms all = {RandomShift(1, 5), ToFloat(), RandomMirror(5),
                          Normalize({0.5f}, {0.5f})};
  const auto dataset = *MakeImageDataset(Images(1), all);
  const auto plain =
      *MakeTransformedDataset(*MakeImageDataset(Images(1), {}), all);
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    EXPECT_TRUE(BitEqual(FillFrom(*dataset, {0, 1, 2}, epoch).inputs,
                         FillFrom(*plain, {0, 1, 2}, epoch).inputs));
  }
}

TEST(ImageDatasetTest, RefusesWhatDoesNotFit) {
  ByteImages images = Images(1);
  images.labels.pop_back();
  EXPECT_EQ(MakeImageDataset(images, {}).status().message(),
            "12 bytes of pixels are not 2 images [2, 2, 1], one for each "
            "label; give as many of both");
  images = Images(1);
  images.num_classes = 2;
  EXPECT_EQ(MakeImageDataset(images, {}).status().message(),
            "label 2 is 2, not a class below 2; number classes from 0");
  images = Images(1);
  images.shape = {4, 1};
  EXPECT_FALSE(MakeImageDataset(images, {}).ok());
  EXPECT_FALSE(MakeImageDataset(Images(1), {Normalize({1, 1}, {1, 1})}).ok());
}

TEST(TakeImagesTest, TakesARange) {
  const auto taken = TakeImages(Images(1), 1, 3);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(taken->labels, ElementsAre(0, 2));
  EXPECT_THAT(taken->pixels, ElementsAre(50, 51, 52, 53, 100, 101, 102, 103));
  EXPECT_EQ(TakeImages(Images(1), 1, 4).status().message(),
            "images [1, 4) are asked for, but there are only 3; ask for fewer");
}

}  // namespace
}  // namespace troupe::data
