#include "data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace troupe::data {
namespace {

// Weights of the output positions [begin, begin + count) along one axis.
struct Filter {
  struct Tap {
    std::int64_t first = 0;  // input position of the first weight
    std::int64_t count = 0;
    std::size_t at = 0;  // position of its first weight in `weights`
  };
  std::vector<Tap> taps;  // indexed by output position
  std::vector<float> weights;
};

Filter MakeFilter(std::int64_t from, std::int64_t to, std::int64_t begin,
                  std::int64_t count) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  Filter filter;
  std::vector<double> weights;
  for (std::int64_t i = begin; i < begin + count; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const std::int64_t first = std::max<std::int64_t>(
        static_cast<std::int64_t>(center - support + 0.5), 0);
    const std::int64_t end =
        std::min(static_cast<std::int64_t>(center + support + 0.5), from);
    weights.clear();
    double sum = 0;
    for (std::int64_t x = first; x < end; ++x) {
      const double distance =
          std::abs((static_cast<double>(x) - center + 0.5) / support);
      weights.push_back(std::max(1 - distance, 0.0));
      sum += weights.back();
    }
    filter.taps.push_back({first, end - first, filter.weights.size()});
    for (const double weight : weights) {
      filter.weights.push_back(static_cast<float>(weight / sum));
    }
  }
  return filter;
}

// Resizes one row of pixels, [W, 3], to the output positions of `filter`.
void FilterRow(const std::uint8_t* row, const Filter& filter, float* to) {
  for (const Filter::Tap& tap : filter.taps) {
    const float* weight = filter.weights.data() + tap.at;
    const std::uint8_t* pixel = row + tap.first * kImageChannels;
    float red = 0, green = 0, blue = 0;
    for (std::int64_t i = 0; i < tap.count; ++i, pixel += kImageChannels) {
      red += weight[i] * static_cast<float>(pixel[0]);
      green += weight[i] * static_cast<float>(pixel[1]);
      blue += weight[i] * static_cast<float>(pixel[2]);
    }
    *to++ = red;
    *to++ = green;
    *to++ = blue;
  }
}

}  // namespace

void ResizeBilinear(const Image& image, const CropRegion& region,
                    float* values) {
  const Box& box = region.box;
  const Box& window = region.window;
  TROUPE_CHECK(box.top >= 0 && box.left >= 0 && box.height > 0 &&
                   box.width > 0 && box.top + box.height <= image.height &&
                   box.left + box.width <= image.width,
               "a box lies inside its image");
  TROUPE_CHECK(window.top >= 0 && window.left >= 0 &&
                   window.top + window.height <= region.resized_height &&
                   window.left + window.width <= region.resized_width,
               "a window lies inside the resized box");
  const Filter across =
      MakeFilter(box.width, region.resized_width, window.left, window.width);
  const Filter down =
      MakeFilter(box.height, region.resized_height, window.top, window.height);
  // Rows of the box that the window's rows depend on.
  const std::int64_t first = down.taps.front().first;
  const std::int64_t end = down.taps.back().first + down.taps.back().count;
  const std::int64_t row = window.width * kImageChannels;
  std::vector<float> rows((end - first) * row);
  for (std::int64_t y = first; y < end; ++y) {
    FilterRow(image.at(box.top + y, box.left), across,
              rows.data() + (y - first) * row);
  }
  for (const Filter::Tap& tap : down.taps) {
    std::fill(values, values + row, 0.0f);
    for (std::int64_t i = 0; i < tap.count; ++i) {
      const float weight = down.weights[tap.at + i];
      const float* from = rows.data() + (tap.first + i - first) * row;
      for (std::int64_t x = 0; x < row; ++x) values[x] += weight * from[x];
    }
    values += row;
  }
}

}  // namespace troupe::data
