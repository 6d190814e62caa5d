#include "data/images/image_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::data {

absl::Status CheckImageSize(std::int64_t height, std::int64_t width,
                            absl::string_view name) {
  if (height < 1 || width < 1) {
    return absl::DataLossError(absl::StrCat(name, ": an image of ", width,
                                            " x ", height,
                                            " pixels; replace or remove it"));
  }
  // The product of two 32-bit sizes fits.
  if (height * width > kImagePixelsMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        name, ": ", width, " x ", height, " pixels are more than the limit of ",
        kImagePixelsMax, "; make it smaller or remove it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Image> MakeImage(std::int64_t height, std::int64_t width,
                                absl::string_view name) {
  TROUPE_RETURN_IF_ERROR(CheckImageSize(height, width, name));
  Image image;
  image.height = height;
  image.width = width;
  image.pixels.resize(
      static_cast<std::size_t>(height * width * kImageChannels));
  return image;
}

void FillImage(const std::array<std::uint8_t, kImageChannels>& colour,
               Image& image) {
  if (colour == std::array<std::uint8_t, kImageChannels>{}) return;
  for (auto to = image.pixels.begin(); to != image.pixels.end();) {
    to = std::copy(colour.begin(), colour.end(), to);
  }
}

}  // namespace troupe::data
