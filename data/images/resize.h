// Resizes a part of an image with the bilinear filter and antialiasing of
// PyTorch's interpolate(mode="bilinear", antialias=True), which torchvision
// uses on tensors.
//
//   CropRegion region;                       // the upper left quarter
//   region.box = {0, 0, image.height / 2, image.width / 2};
//   region.resized_height = region.resized_width = 256;
//   region.window = {16, 16, 224, 224};      // of the 256 x 256
//   std::vector<float> values(224 * 224 * 3);
//   ResizeBilinear(image, region, values.data());
//
// The filter is a triangle of half-width max(1, scale), scale = box / resized,
// around (i + 0.5) * scale; weights are normalised where it leaves the box.
// Rows are filtered first, then columns, with f32 sums in pixel order. Only the
// window is computed, with the same bits as in the whole image.

#ifndef DATA_IMAGES_RESIZE_H_
#define DATA_IMAGES_RESIZE_H_

#include <cstdint>

#include "data/images/decode.h"

namespace troupe::data {

// Rows [top, top + height), columns [left, left + width); not empty.
struct Box {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  friend bool operator==(const Box& a, const Box& b) {
    return a.top == b.top && a.left == b.left && a.height == b.height &&
           a.width == b.width;
  }
};

// A box of an image that is resized, and the window of the result that is kept.
struct CropRegion {
  Box box;
  std::int64_t resized_height = 0;
  std::int64_t resized_width = 0;
  Box window;  // inside the resized box
};

// `values` is [window.height, window.width, 3], 0..255.
void ResizeBilinear(const Image& image, const CropRegion& region,
                    float* values);

}  // namespace troupe::data

#endif  // DATA_IMAGES_RESIZE_H_
