#include "data/images/crop.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "nn/random/philox.h"

namespace troupe::data {
namespace {

constexpr double kRatioMin = 3.0 / 4.0;
constexpr double kRatioMax = 4.0 / 3.0;
constexpr int kTries = 10;

// Rounds halves to even, as Python's round() does.
std::int64_t Rounded(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

class ResizedCenterCropImpl : public Crop {
 public:
  ResizedCenterCropImpl(std::int64_t resize, std::int64_t size)
      : resize_(resize), size_(size) {
    TROUPE_CHECK(1 <= size && size <= resize,
                 "a central crop lies inside the resized image");
  }

  std::int64_t size() const override { return size_; }

  CropRegion RegionOf(const SampleKey&, std::int64_t height,
                      std::int64_t width) const override {
    CropRegion region;
    region.box = {0, 0, height, width};
    // The longer side is rounded down, as torchvision does.
    region.resized_height =
        height <= width ? resize_ : resize_ * height / width;
    region.resized_width = height <= width ? resize_ * width / height : resize_;
    region.window = {
        Rounded(static_cast<double>(region.resized_height - size_) / 2),
        Rounded(static_cast<double>(region.resized_width - size_) / 2), size_,
        size_};
    return region;
  }

 private:
  const std::int64_t resize_;
  const std::int64_t size_;
};

class RandomResizedCropImpl : public Crop {
 public:
  RandomResizedCropImpl(std::int64_t size, double area_min, std::uint64_t seed)
      : size_(size), area_min_(area_min), random_(seed, nn::Purpose::kAugment) {
    TROUPE_CHECK(size >= 1 && area_min > 0 && area_min <= 1,
                 "a random crop has a size, and takes a part of the image");
  }

  std::int64_t size() const override { return size_; }

  CropRegion RegionOf(const SampleKey& key, std::int64_t height,
                      std::int64_t width) const override {
    nn::RandomPosition position;
    position.step = static_cast<std::uint32_t>(key.epoch);
    position.position = static_cast<std::uint32_t>(key.index);
    position.path = nn::HashName("data.random_resized_crop");
    nn::RandomStream draws(random_, position);
    CropRegion region;
    region.box = BoxOf(draws, height, width);
    region.resized_height = region.resized_width = size_;
    region.window = {0, 0, size_, size_};
    return region;
  }

 private:
  Box BoxOf(nn::RandomStream& draws, std::int64_t height,
            std::int64_t width) const {
    const double area = static_cast<double>(height * width);
    for (int i = 0; i < kTries; ++i) {
      const double part = area * draws.Uniform(area_min_, 1);
      const double ratio =
          std::exp(draws.Uniform(std::log(kRatioMin), std::log(kRatioMax)));
      Box box;
      box.width = Rounded(std::sqrt(part * ratio));
      box.height = Rounded(std::sqrt(part / ratio));
      if (box.width < 1 || box.width > width || box.height < 1 ||
          box.height > height) {
        continue;
      }
      box.top = static_cast<std::int64_t>(
          draws.Below(static_cast<std::uint64_t>(height - box.height + 1)));
      box.left = static_cast<std::int64_t>(
          draws.Below(static_cast<std::uint64_t>(width - box.width + 1)));
      return box;
    }
    return CentralBox(height, width);
  }

  static Box CentralBox(std::int64_t height, std::int64_t width) {
    const double h = static_cast<double>(height);
    const double w = static_cast<double>(width);
    Box box = {0, 0, height, width};
    if (w / h < kRatioMin) {
      box.height = std::min(Rounded(w / kRatioMin), height);
    } else if (w / h > kRatioMax) {
      box.width = std::min(Rounded(h * kRatioMax), width);
    }
    box.top = (height - box.height) / 2;
    box.left = (width - box.width) / 2;
    return box;
  }

  const std::int64_t size_;
  const double area_min_;
  const nn::RandomKey random_;
};

}  // namespace

CropPtr ResizedCenterCrop(std::int64_t resize, std::int64_t size) {
  return std::make_shared<ResizedCenterCropImpl>(resize, size);
}

CropPtr RandomResizedCrop(std::int64_t size, double area_min,
                          std::uint64_t seed) {
  return std::make_shared<RandomResizedCropImpl>(size, area_min, seed);
}

}  // namespace troupe::data
