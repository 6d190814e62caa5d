#include "data/images/image_memory.h"

#include "absl/strings/str_cat.h"

namespace troupe::data {

absl::StatusOr<Image> MakeImage(std::int64_t height, std::int64_t width,
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
  Image image;
  image.height = height;
  image.width = width;
  image.pixels.resize(
      static_cast<std::size_t>(height * width * kImageChannels));
  return image;
}

}  // namespace troupe::data
