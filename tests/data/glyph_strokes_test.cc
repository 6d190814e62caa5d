#include "data/synthetic/glyph_strokes.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace troupe::data {
namespace {

TEST(GlyphStrokesTest, EveryDigitFillsItsBox) {
  for (int digit = 0; digit < kGlyphDigits; ++digit) {
    for (int variant = 0; variant < kGlyphVariants; ++variant) {
      float top = 1, bottom = 0;
      for (const Stroke& stroke : GlyphStrokes(digit, variant)) {
        EXPECT_GE(stroke.points.size(), 2u);
        for (const Point& p : stroke.points) {
          EXPECT_GE(p.x, 0);
          EXPECT_LE(p.x, 1);
          top = std::min(top, p.y);
          bottom = std::max(bottom, p.y);
        }
      }
      EXPECT_GE(top, 0) << digit;
      EXPECT_LE(top, 0.06f) << digit;
      EXPECT_GE(bottom, 0.94f) << digit;
      EXPECT_LE(bottom, 1) << digit;
    }
  }
}

}  // namespace
}  // namespace troupe::data
