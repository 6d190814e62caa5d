// Generated images of digits that resemble handwriting: a real problem of image
// classification that needs no file.
//
//   GlyphOptions options;
//   options.count = 2048;
//   Transforms pixels = {ToFloat(), Normalize({kGlyphMean}, {kGlyphStddev})};
//   TROUPE_ASSIGN_OR_RETURN(DatasetPtr test,
//                           MakeGlyphDataset(options, "test", pixels));
//
// Samples are 28x28x1, classes the digits 0..9 (sample i shows i % 10). Each
// sample draws its own pen strokes (glyph_strokes.h), size, aspect, slant,
// turn, place, pen width, ink, background, stray lines and noise. Sample i of a
// split is a function of (seed, split, i) alone, without a library's sine or
// logarithm, so it is the same on every machine.
//
// Cost: about 12 us a sample at construction, 784 bytes a sample of memory.
// Difficulty (docs/data.md): a linear model reaches 73 %, LeNet-5 98.7 % after
// four epochs of a second each.

#ifndef DATA_SYNTHETIC_GLYPHS_H_
#define DATA_SYNTHETIC_GLYPHS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/dataset.h"
#include "data/transform.h"

namespace troupe::data {

constexpr int kGlyphSide = 28;  // pixels
constexpr std::int64_t kGlyphCountMax = 1 << 24;

// Mean and deviation of the pixels, in [0, 1], of the first 16,384 training
// samples of seed 0.
constexpr float kGlyphMean = 0.195f;
constexpr float kGlyphStddev = 0.201f;

// How much samples vary; the defaults are what the accuracies were measured
// with. Lengths are pixels; ranges are drawn from uniformly.
struct GlyphStyle {
  float height_min = 13, height_max = 20;
  float aspect_min = 0.55f, aspect_max = 0.9f;  // width / height
  float slant_max = 0.3f;  // shift of the top edge / half the height
  float turn_max = 0.08f;  // tangent of half the angle
  float shift_max = 2.5f;  // shift of the centre, along each axis
  float pen_min = 0.6f, pen_max = 1.5f;  // half the stroke's width
  float wobble_max = 0.05f;              // control point's shift / the height
  float ink_min = 0.55f, ink_max = 1.0f;
  float background_max = 0.25f;
  float noise_max = 0.12f;  // standard deviation; drawn per sample
  int stray_lines_max = 1;  // short pen strokes anywhere
};

struct GlyphOptions {
  std::int64_t count = 16384;
  std::uint64_t seed = 0;
  GlyphStyle style;
};

// Returns the pixels of sample `index` of `split`, [28, 28], 0 black to 255
// white.
std::vector<std::uint8_t> DrawGlyph(const GlyphOptions& options,
                                    absl::string_view split,
                                    std::int64_t index);

// kInvalidArgument: count is not in [1, kGlyphCountMax]; see
// MakeImageDataset().
absl::StatusOr<DatasetPtr> MakeGlyphDataset(const GlyphOptions& options,
                                            absl::string_view split,
                                            Transforms transforms);

}  // namespace troupe::data

#endif  // DATA_SYNTHETIC_GLYPHS_H_
