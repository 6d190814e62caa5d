// Crops: choose the part of an image that becomes a sample, and its resizing.
// They correspond to torchvision's transforms that change the size.
//
//   const CropPtr train = RandomResizedCrop(/*size=*/224, /*area_min=*/0.08,
//                                           seed);
//   const CropPtr test = ResizedCenterCrop(/*resize=*/256, /*size=*/224);
//   const CropRegion region = test->RegionOf({epoch, index}, height, width);
//   ResizeBilinear(image, region, values);   // [224, 224, 3]
//
// Random crops draw from (seed, epoch, sample) alone. Crops are immutable and
// shared; any thread may use them.

#ifndef DATA_IMAGES_CROP_H_
#define DATA_IMAGES_CROP_H_

#include <cstdint>
#include <memory>

#include "data/images/resize.h"
#include "data/transform.h"

namespace troupe::data {

class Crop {
 public:
  virtual ~Crop() = default;

  // Returns the region of an image of height x width pixels. Its window is
  // size() x size().
  virtual CropRegion RegionOf(const SampleKey& key, std::int64_t height,
                              std::int64_t width) const = 0;
  virtual std::int64_t size() const = 0;
};

using CropPtr = std::shared_ptr<const Crop>;

// Returns Resize(resize), which makes the shorter side `resize` pixels long,
// then CenterCrop(size). resize >= size >= 1.
CropPtr ResizedCenterCrop(std::int64_t resize, std::int64_t size);

// Returns torchvision's RandomResizedCrop(size): a box with a random area,
// [area_min, 1] of the image, and a random aspect ratio, [3/4, 4/3] with
// uniform logarithm, at a random place, resized to size x size. After 10 boxes
// that do not fit, it takes the largest central box with an allowed ratio.
// 0 < area_min <= 1.
// Source: Szegedy et al. 2015, "Going deeper with convolutions", sec. 6.
CropPtr RandomResizedCrop(std::int64_t size, double area_min,
                          std::uint64_t seed);

}  // namespace troupe::data

#endif  // DATA_IMAGES_CROP_H_
