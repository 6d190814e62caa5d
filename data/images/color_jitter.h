// Random changes of brightness, contrast, saturation and hue, as torchvision's
// ColorJitter makes them.
//
//   ColorJitterOptions options;
//   options.brightness = options.contrast = options.saturation = 0.4;
//   options.hue = 0.1;
//   Transforms transforms = {ToFloat(), ColorJitter(options, seed)};
//
// Images are RGB [H, W, 3] in [0, 1], before and after: put it between ToFloat
// and Normalize. With grey = 0.2989 R + 0.587 G + 0.114 B, a factor f and all
// values clamped to [0, 1]:
//
//     brightness   f x                      f in [max(0, 1 - b), 1 + b]
//     contrast     f x + (1 - f) mean(grey)
//     saturation   f x + (1 - f) grey
//     hue          HSV's H + h modulo 1     h in [-hue, hue]
//
// The changes are applied in a random order. Order and factors follow from
// (seed, epoch, sample). A change whose option is 0 is left out.

#ifndef DATA_IMAGES_COLOR_JITTER_H_
#define DATA_IMAGES_COLOR_JITTER_H_

#include <cstdint>

#include "data/transform.h"

namespace troupe::data {

struct ColorJitterOptions {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;  // at most 0.5
};

// Check() rejects images of other shapes, negative options, and hue above 0.5.
TransformPtr ColorJitter(const ColorJitterOptions& options, std::uint64_t seed);

// The four changes, each applied to `count` pixels.
void AdjustBrightness(float factor, std::int64_t count, float* rgb);
void AdjustContrast(float factor, std::int64_t count, float* rgb);
void AdjustSaturation(float factor, std::int64_t count, float* rgb);
void AdjustHue(float turn, std::int64_t count, float* rgb);

}  // namespace troupe::data

#endif  // DATA_IMAGES_COLOR_JITTER_H_
