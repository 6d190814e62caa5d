#include "data/synthetic/glyphs.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;

GlyphOptions Options(std::int64_t count) {
  GlyphOptions options;
  options.count = count;
  return options;
}

// The image as 28 lines of " .:*#", dark to bright.
std::string Picture(const Bytes& pixels) {
  std::string picture;
  for (int y = 0; y < kGlyphSide; ++y) {
    std::string line;
    for (int x = 0; x < kGlyphSide; ++x) {
      line += " .:*#"[pixels[y * kGlyphSide + x] * 5 / 256];
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&picture, line, "\n");
  }
  return picture;
}

// A style in which nothing varies.
GlyphStyle Plain() {
  GlyphStyle style;
  style.height_min = style.height_max = 20;
  style.aspect_min = style.aspect_max = 0.7f;
  style.slant_max = style.turn_max = style.shift_max = style.wobble_max = 0;
  style.pen_min = style.pen_max = 1;
  style.ink_min = style.ink_max = 1;
  style.background_max = style.noise_max = 0;
  style.stray_lines_max = 0;
  return style;
}

TEST(GlyphsTest, AThreeLooksLikeAThree) {
  GlyphOptions options;
  options.style = Plain();
  EXPECT_EQ(Picture(DrawGlyph(options, "train", 13)), R"(



        :##########
        :##########
                ##:
               *#*
              .##
              ##:
             *#*
            .##
            ##:
            ###*.
            :#####.
               :*##
                 *#:
                 .#*
                  ##
                 .#*
        #*.      *#:
        ###:   .*##
         :###**###
           *####:
             ..



)");
}

TEST(GlyphsTest, IsAFunctionOfSeedSplitAndIndex) {
  const GlyphOptions options = Options(30);
  const auto dataset = MakeGlyphDataset(options, "train", {});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec(), ClassificationSpec({28, 28, 1}, 10));
  const Filled batch = FillFrom(**dataset, {17});
  const Bytes alone = DrawGlyph(Options(1), "train", 17);
  const std::vector<float> values = ToVector<float>(batch.inputs);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), values.begin()));
  EXPECT_THAT(ToVector<std::int64_t>(batch.targets), ElementsAre(7));

  GlyphOptions other_seed = options;
  other_seed.seed = 1;
  EXPECT_NE(alone, DrawGlyph(other_seed, "train", 17));
  EXPECT_NE(alone, DrawGlyph(options, "test", 17));
  EXPECT_NE(alone, DrawGlyph(options, "train", 27));
}

// A change of these bits changes every result measured on glyphs.
TEST(GlyphsTest, DrawsTheSameBitsAsEver) {
  std::string pixels;
  for (int i = 0; i < 100; ++i) {
    const Bytes glyph = DrawGlyph(Options(1), "train", i);
    pixels.append(glyph.begin(), glyph.end());
  }
  EXPECT_EQ(nn::HashName(pixels), 3852005747u);
}

TEST(GlyphsTest, MeanAndDeviationAreThoseOfThePixels) {
  double sum = 0, squares = 0;
  constexpr int kCount = 2000;
  for (int i = 0; i < kCount; ++i) {
    for (std::uint8_t pixel : DrawGlyph(Options(1), "train", i)) {
      sum += pixel / 255.0;
      squares += pixel / 255.0 * (pixel / 255.0);
    }
  }
  const double mean = sum / (kCount * 784);
  EXPECT_NEAR(mean, kGlyphMean, 0.003);
  EXPECT_NEAR(std::sqrt(squares / (kCount * 784) - mean * mean), kGlyphStddev,
              0.003);
}

TEST(GlyphsTest, RefusesImpossibleCounts) {
  for (std::int64_t count : {std::int64_t{0}, kGlyphCountMax + 1}) {
    EXPECT_EQ(MakeGlyphDataset(Options(count), "train", {}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace troupe::data
