// The ten digits as pen strokes in a unit box, x to the right and y downwards.
//
//   for (const Stroke& stroke : GlyphStrokes(/*digit=*/4, /*variant=*/1)) {
//     stroke.kind; stroke.points;     // control points, in drawing order
//   }
//
// Each digit has kGlyphVariants forms, such as a 7 with and without a bar, or
// an open and a closed 4. Digits with one form have two equal variants.

#ifndef DATA_SYNTHETIC_GLYPH_STROKES_H_
#define DATA_SYNTHETIC_GLYPH_STROKES_H_

#include "absl/types/span.h"

namespace troupe::data {

struct Point {
  float x = 0;
  float y = 0;
};

enum class StrokeKind {
  kLines,  // straight from point to point
  kCurve,  // a Catmull-Rom spline through the points
  kLoop,   // the same, closed
};

struct Stroke {
  StrokeKind kind;
  absl::Span<const Point> points;
};

constexpr int kGlyphDigits = 10;
constexpr int kGlyphVariants = 2;

// Returns the strokes of `digit` 0..9 in the form `variant`; static data.
absl::Span<const Stroke> GlyphStrokes(int digit, int variant);

}  // namespace troupe::data

#endif  // DATA_SYNTHETIC_GLYPH_STROKES_H_
