#include "data/synthetic/glyphs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "data/image_dataset.h"
#include "data/synthetic/glyph_strokes.h"
#include "nn/random/philox.h"

namespace troupe::data {
namespace {

constexpr int kPixels = kGlyphSide * kGlyphSide;
constexpr int kSplineSteps = 6;  // straight pieces per piece of a curve
constexpr float kFar = 1e6f;     // squared distance of a pixel without ink

float Between(nn::RandomStream& draws, float low, float high) {
  return low + (high - low) * draws.UniformF32();
}

// Placement of a glyph: maps the unit box to pixels.
struct Placement {
  float center_x, center_y;
  float width, height;
  float slant;
  float cosine, sine;

  Point Place(Point p) const {
    const float y = (p.y - 0.5f) * height;
    const float x = (p.x - 0.5f) * width - slant * y;
    return {center_x + cosine * x - sine * y, center_y + sine * x + cosine * y};
  }
};

Placement DrawPlacement(const GlyphStyle& style, nn::RandomStream& draws) {
  Placement placement;
  const float middle = 0.5f * kGlyphSide;
  placement.center_x =
      middle + Between(draws, -style.shift_max, style.shift_max);
  placement.center_y =
      middle + Between(draws, -style.shift_max, style.shift_max);
  placement.height = Between(draws, style.height_min, style.height_max);
  placement.width =
      placement.height * Between(draws, style.aspect_min, style.aspect_max);
  placement.slant = Between(draws, -style.slant_max, style.slant_max);
  // Rational points of the circle, without a library's sine.
  const float t = Between(draws, -style.turn_max, style.turn_max);
  placement.cosine = (1 - t * t) / (1 + t * t);
  placement.sine = 2 * t / (1 + t * t);
  return placement;
}

// Drawing surface: the squared distance of every pixel's centre to the nearest
// stroke.
class Canvas {
 public:
  explicit Canvas(float pen) : reach_(pen + 1.0f), pen_(pen) {
    std::fill(distance2_, distance2_ + kPixels, kFar);
  }

  void Line(Point a, Point b) {
    const float dx = b.x - a.x;
    const float dy = b.y - a.y;
    const float length2 = std::max(dx * dx + dy * dy, 1e-6f);
    const int x_begin = First(std::min(a.x, b.x));
    const int x_end = Last(std::max(a.x, b.x));
    const int y_end = Last(std::max(a.y, b.y));
    for (int y = First(std::min(a.y, b.y)); y < y_end; ++y) {
      for (int x = x_begin; x < x_end; ++x) {
        const float px = x + 0.5f - a.x;
        const float py = y + 0.5f - a.y;
        const float along =
            std::min(std::max((px * dx + py * dy) / length2, 0.0f), 1.0f);
        const float ex = px - along * dx;
        const float ey = py - along * dy;
        float& nearest = distance2_[y * kGlyphSide + x];
        nearest = std::min(nearest, ex * ex + ey * ey);
      }
    }
  }

  // Returns the part of pixel `i` that is under ink, in [0, 1]; edges are one
  // pixel soft.
  float Ink(int i) const {
    if (distance2_[i] >= reach_ * reach_) return 0;
    const float inside = pen_ + 0.5f - std::sqrt(distance2_[i]);
    return std::min(std::max(inside, 0.0f), 1.0f);
  }

 private:
  // The pixels [First(low), Last(high)) within reach, along one axis.
  int First(float low) const { return Clamp(low - reach_); }
  int Last(float high) const { return Clamp(high + reach_ + 1); }
  static int Clamp(float x) {
    return static_cast<int>(
        std::min(std::max(x, 0.0f), static_cast<float>(kGlyphSide)));
  }

  const float reach_;
  const float pen_;
  float distance2_[kPixels];
};

// Catmull-Rom spline from b to c, with its neighbours a and d.
Point Spline(Point a, Point b, Point c, Point d, float t) {
  const auto at = [t](float a, float b, float c, float d) {
    return 0.5f * (2 * b + t * ((c - a) + t * ((2 * a - 5 * b + 4 * c - d) +
                                               t * (3 * b - a - 3 * c + d))));
  };
  return {at(a.x, b.x, c.x, d.x), at(a.y, b.y, c.y, d.y)};
}

void DrawStroke(StrokeKind kind, const std::vector<Point>& points,
                Canvas& canvas) {
  const int count = static_cast<int>(points.size());
  const bool loop = kind == StrokeKind::kLoop;
  const auto at = [&](int i) {
    return points[loop ? (i + count) % count : std::clamp(i, 0, count - 1)];
  };
  for (int i = 0; i < (loop ? count : count - 1); ++i) {
    if (kind == StrokeKind::kLines) {
      canvas.Line(points[i], points[i + 1]);
      continue;
    }
    Point from = at(i);
    for (int step = 1; step <= kSplineSteps; ++step) {
      const float t = static_cast<float>(step) / kSplineSteps;
      const Point to = Spline(at(i - 1), at(i), at(i + 1), at(i + 2), t);
      canvas.Line(from, to);
      from = to;
    }
  }
}

void DrawDigit(const GlyphStyle& style, int digit, nn::RandomStream& draws,
               Canvas& canvas) {
  const Placement placement = DrawPlacement(style, draws);
  const int variant = static_cast<int>(draws.Below(kGlyphVariants));
  std::vector<Point> points;
  for (const Stroke& stroke : GlyphStrokes(digit, variant)) {
    points.clear();
    for (Point p : stroke.points) {
      p.x += Between(draws, -style.wobble_max, style.wobble_max);
      p.y += Between(draws, -style.wobble_max, style.wobble_max);
      points.push_back(placement.Place(p));
    }
    DrawStroke(stroke.kind, points, canvas);
  }
}

void DrawStrayLines(const GlyphStyle& style, nn::RandomStream& draws,
                    Canvas& canvas) {
  const std::uint64_t count = draws.Below(style.stray_lines_max + 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Point from = {Between(draws, 0, kGlyphSide),
                        Between(draws, 0, kGlyphSide)};
    const Point to = {from.x + Between(draws, -5, 5),
                      from.y + Between(draws, -5, 5)};
    canvas.Line(from, to);
  }
}

// Nearly normal, mean 0 and variance 1: the sum of four bytes.
float RoughNormal(nn::RandomStream& draws) {
  const std::uint32_t bits = draws.Bits32();
  const int sum = static_cast<int>((bits & 255) + (bits >> 8 & 255) +
                                   (bits >> 16 & 255) + (bits >> 24));
  return static_cast<float>(sum - 510) * (1.0f / 147.8f);
}

void DrawInto(const GlyphOptions& options, std::uint32_t path,
              std::int64_t index, std::uint8_t* pixels) {
  const GlyphStyle& style = options.style;
  nn::RandomPosition position;
  position.position = static_cast<std::uint32_t>(index);
  position.path = path;
  nn::RandomStream draws(nn::RandomKey(options.seed, nn::Purpose::kData),
                         position);
  Canvas canvas(Between(draws, style.pen_min, style.pen_max));
  DrawDigit(style, static_cast<int>(index % kGlyphDigits), draws, canvas);
  DrawStrayLines(style, draws, canvas);
  const float background = Between(draws, 0, style.background_max);
  const float ink = Between(draws, style.ink_min, style.ink_max) - background;
  const float noise = Between(draws, 0, style.noise_max);
  for (int i = 0; i < kPixels; ++i) {
    const float value =
        background + ink * canvas.Ink(i) + noise * RoughNormal(draws);
    pixels[i] = static_cast<std::uint8_t>(
        std::min(std::max(value, 0.0f), 1.0f) * 255.0f + 0.5f);
  }
}

std::uint32_t PathOf(absl::string_view split) {
  return nn::HashName(absl::StrCat("data.glyphs.", split));
}

}  // namespace

std::vector<std::uint8_t> DrawGlyph(const GlyphOptions& options,
                                    absl::string_view split,
                                    std::int64_t index) {
  std::vector<std::uint8_t> pixels(kPixels);
  DrawInto(options, PathOf(split), index, pixels.data());
  return pixels;
}

absl::StatusOr<DatasetPtr> MakeGlyphDataset(const GlyphOptions& options,
                                            absl::string_view split,
                                            Transforms transforms) {
  if (options.count < 1 || options.count > kGlyphCountMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "glyphs come in sets of 1 to ", kGlyphCountMax, " samples, not ",
        options.count, "; choose a number between"));
  }
  ByteImages images;
  images.shape = {kGlyphSide, kGlyphSide, 1};
  images.num_classes = kGlyphDigits;
  images.pixels.resize(options.count * kPixels);
  images.labels.resize(options.count);
  const std::uint32_t path = PathOf(split);
  for (std::int64_t i = 0; i < options.count; ++i) {
    images.labels[i] = static_cast<std::uint8_t>(i % kGlyphDigits);
    DrawInto(options, path, i, images.pixels.data() + i * kPixels);
  }
  return MakeImageDataset(std::move(images), std::move(transforms));
}

}  // namespace troupe::data
