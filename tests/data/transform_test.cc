#include "data/transform.h"

#include <numeric>
#include <set>

#include "data/in_memory_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;

// [H, W, C] with the values 1, 2, 3, ...
std::vector<float> Ramp(const nn::Shape& shape) {
  std::vector<float> values(shape.numel());
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(TransformTest, ToFloatThenNormalize) {
  std::vector<float> values = {0, 255, 51, 255};
  ToFloat()->Apply({}, {1, 2, 2}, values.data());
  EXPECT_THAT(values, ElementsAre(0, 1, 0.2f, 1));
  Normalize({0.5f, 0}, {0.5f, 2})->Apply({}, {1, 2, 2}, values.data());
  EXPECT_THAT(values, ElementsAre(-1, 0.5f, (0.2f - 0.5f) / 0.5f, 0.5f));
}

TEST(TransformTest, NormalizeChecksChannels) {
  EXPECT_TRUE(Normalize({0, 0}, {1, 1})->Check({4, 4, 2}).ok());
  EXPECT_EQ(Normalize({0}, {1})->Check({4, 4, 3}).message(),
            "Normalize has 1 means and 1 standard deviations; the samples "
            "[4, 4, 3] have 3 channels; give one of each for a channel");
  EXPECT_FALSE(Normalize({0}, {0})->Check({4, 4, 1}).ok());
}

// The image moved by (down, right), with zeros from outside.
std::vector<float> Moved(const std::vector<float>& image,
                         const nn::Shape& shape, int down, int right) {
  std::vector<float> moved(image.size(), 0.0f);
  for (int y = 0; y < shape[0]; ++y) {
    for (int x = 0; x < shape[1]; ++x) {
      const int from_y = y - down;
      const int from_x = x - right;
      if (from_y < 0 || from_y >= shape[0]) continue;
      if (from_x < 0 || from_x >= shape[1]) continue;
      for (int c = 0; c < shape[2]; ++c) {
        moved[(y * shape[1] + x) * shape[2] + c] =
            image[(from_y * shape[1] + from_x) * shape[2] + c];
      }
    }
  }
  return moved;
}

TEST(TransformTest, RandomShiftGivesEveryShiftAndNothingElse) {
  const nn::Shape shape = {4, 5, 2};
  const std::vector<float> image = Ramp(shape);
  const TransformPtr shift = RandomShift(/*pixels_max=*/1, /*seed=*/3);
  std::set<std::vector<float>> expected;
  for (int down = -1; down <= 1; ++down) {
    for (int right = -1; right <= 1; ++right) {
      expected.insert(Moved(image, shape, down, right));
    }
  }
  std::set<std::vector<float>> seen;
  for (std::int64_t index = 0; index < 200; ++index) {
    std::vector<float> values = image;
    shift->Apply({0, index}, shape, values.data());
    seen.insert(values);
  }
  EXPECT_EQ(seen, expected);
}

TEST(TransformTest, RandomMirrorMirrorsHalf) {
  const nn::Shape shape = {1, 3, 2};
  const TransformPtr mirror = RandomMirror(/*seed=*/1);
  int mirrored = 0;
  for (std::int64_t index = 0; index < 1000; ++index) {
    std::vector<float> values = Ramp(shape);
    mirror->Apply({0, index}, shape, values.data());
    if (values[0] == 1) {
      EXPECT_THAT(values, ElementsAre(1, 2, 3, 4, 5, 6));
    } else {
      EXPECT_THAT(values, ElementsAre(5, 6, 3, 4, 1, 2));
      ++mirrored;
    }
  }
  EXPECT_NEAR(mirrored, 500, 60);
}

TEST(TransformTest, RandomOnesDependOnSeedEpochAndSampleOnly) {
  const nn::Shape shape = {9, 9, 1};
  const auto shifted = [&](std::uint64_t seed, SampleKey key) {
    std::vector<float> values = Ramp(shape);
    RandomShift(4, seed)->Apply(key, shape, values.data());
    return values;
  };
  EXPECT_EQ(shifted(1, {2, 3}), shifted(1, {2, 3}));
  int same_epoch = 0, same_seed = 0, same_sample = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    same_seed += shifted(1, {0, i}) == shifted(2, {0, i});
    same_epoch += shifted(1, {0, i}) == shifted(1, {1, i});
    same_sample += shifted(1, {0, i}) == shifted(1, {0, i + 1});
  }
  EXPECT_LT(same_seed, 10);  // 1 of 81 by chance
  EXPECT_LT(same_epoch, 10);
  EXPECT_LT(same_sample, 10);
}

TEST(TransformTest, RandomOnesNeedImages) {
  EXPECT_FALSE(RandomMirror(0)->Check({10}).ok());
  EXPECT_FALSE(RandomShift(4, 0)->Check({10}).ok());
  EXPECT_FALSE(RandomShift(4, 0)->Check({4, 8, 1}).ok());
  EXPECT_TRUE(RandomShift(3, 0)->Check({4, 8, 1}).ok());
}

TEST(TransformedDatasetTest, TransformsEveryRow) {
  nn::CachingAllocator allocator;
  const auto x = nn::Tensor::Of<float>({2, 1}, {7, 9}, allocator);
  const auto base = *MakeInMemoryDataset(x, x, 0);
  const auto dataset =
      MakeTransformedDataset(base, {Normalize({5}, {2}), Normalize({1}, {1})});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const Filled batch = FillFrom(**dataset, {1, 0});
  EXPECT_THAT(ToVector<float>(batch.inputs), ElementsAre(1, 0));
  EXPECT_THAT(ToVector<float>(batch.targets), ElementsAre(9, 7));
  EXPECT_FALSE(MakeTransformedDataset(base, {RandomMirror(0)}).ok());
}

}  // namespace
}  // namespace troupe::data
