#include "data/images/color_jitter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::data {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using Values = std::vector<float>;

constexpr float kNear = 1e-6f;

TEST(ColorJitterTest, Brightness) {
  Values rgb = {0.2f, 0.5f, 0.9f};
  AdjustBrightness(1.5f, 1, rgb.data());
  EXPECT_THAT(rgb, Pointwise(FloatNear(kNear), Values{0.3f, 0.75f, 1.0f}));
}

// Grey of the two pixels: 0.2989 and 0.114, mean 0.20645.
TEST(ColorJitterTest, Contrast) {
  Values rgb = {1, 0, 0, 0, 0, 1};
  AdjustContrast(0.5f, 2, rgb.data());
  const float low = 0.5f * 0.20645f;
  EXPECT_THAT(rgb, Pointwise(FloatNear(kNear), Values{0.5f + low, low, low, low,
                                                      low, 0.5f + low}));
}

TEST(ColorJitterTest, Saturation) {
  Values rgb = {1, 0, 0};
  AdjustSaturation(0, 1, rgb.data());
  EXPECT_THAT(rgb,
              Pointwise(FloatNear(kNear), Values{0.2989f, 0.2989f, 0.2989f}));
  rgb = {0.6f, 0.4f, 0.2f};
  AdjustSaturation(1, 1, rgb.data());
  EXPECT_THAT(rgb, Pointwise(FloatNear(kNear), Values{0.6f, 0.4f, 0.2f}));
}

TEST(ColorJitterTest, HueTurnsTheCircle) {
  const auto turned = [](float turn, Values rgb) {
    AdjustHue(turn, 1, rgb.data());
    return rgb;
  };
  const float third = 1.0f / 3.0f;
  EXPECT_THAT(turned(third, {1, 0, 0}),
              Pointwise(FloatNear(1e-5f), Values{0, 1, 0}));
  EXPECT_THAT(turned(-third, {1, 0, 0}),
              Pointwise(FloatNear(1e-5f), Values{0, 0, 1}));
  EXPECT_THAT(turned(0.5f, {0.8f, 0.6f, 0.2f}),
              Pointwise(FloatNear(1e-5f), Values{0.2f, 0.4f, 0.8f}));
  EXPECT_THAT(turned(0.3f, {0.4f, 0.4f, 0.4f}),
              Pointwise(FloatNear(0), Values{0.4f, 0.4f, 0.4f}));
  // Through the circle's seam, and all the way round.
  for (const Values& rgb : {Values{0.9f, 0.1f, 0.2f}, Values{0.1f, 0.7f, 0.3f},
                            Values{0.3f, 0.2f, 0.8f}}) {
    EXPECT_THAT(turned(0, rgb), Pointwise(FloatNear(1e-5f), rgb));
    EXPECT_THAT(turned(-0.4f, turned(0.4f, rgb)),
                Pointwise(FloatNear(1e-5f), rgb));
  }
}

TEST(ColorJitterTest, FollowsFromSeedEpochAndSample) {
  ColorJitterOptions options;
  options.brightness = options.contrast = options.saturation = 0.4;
  options.hue = 0.1;
  const Values image = {0.1f, 0.5f, 0.9f, 0.3f, 0.2f, 0.7f};
  const auto jittered = [&](std::uint64_t seed, const SampleKey& key) {
    Values values = image;
    ColorJitter(options, seed)->Apply(key, {1, 2, 3}, values.data());
    return values;
  };
  EXPECT_EQ(jittered(0, {1, 2}), jittered(0, {1, 2}));
  EXPECT_NE(jittered(0, {1, 2}), jittered(1, {1, 2}));
  EXPECT_NE(jittered(0, {1, 2}), jittered(0, {2, 2}));
  EXPECT_NE(jittered(0, {1, 2}), jittered(0, {1, 3}));
  for (std::int64_t index = 0; index < 200; ++index) {
    for (const float value : jittered(5, {0, index})) {
      EXPECT_GE(value, 0);
      EXPECT_LE(value, 1);
    }
  }
}

TEST(ColorJitterTest, WithoutReachNothingChanges) {
  Values values = {0.1f, 0.5f, 0.9f};
  ColorJitter({}, 0)->Apply({}, {1, 1, 3}, values.data());
  EXPECT_EQ(values, (Values{0.1f, 0.5f, 0.9f}));
}

TEST(ColorJitterTest, ChecksShapesAndReach) {
  EXPECT_TRUE(ColorJitter({}, 0)->Check({4, 5, 3}).ok());
  EXPECT_EQ(ColorJitter({}, 0)->Check({4, 5, 1}).message(),
            "ColorJitter needs images [H, W, 3], not samples of [4, 5, 1]; "
            "leave it out for others");
  ColorJitterOptions options;
  options.hue = 0.6;
  EXPECT_THAT(std::string(ColorJitter(options, 0)->Check({4, 5, 3}).message()),
              HasSubstr("hue 0.6"));
}

}  // namespace
}  // namespace troupe::data
