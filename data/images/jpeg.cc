#include "data/images/jpeg.h"

#include <turbojpeg.h>

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/images/image_memory.h"

namespace troupe::data {
namespace {

struct Destroy {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Decompressor = std::unique_ptr<void, Destroy>;

absl::Status Damaged(const Decompressor& jpeg, absl::string_view name) {
  return absl::DataLossError(
      absl::StrCat(name, ": damaged JPEG: ", tjGetErrorStr2(jpeg.get())));
}

// Returns whether the failed call has decoded the whole image nevertheless.
bool IsHarmless(const Decompressor& jpeg) {
  return tjGetErrorCode(jpeg.get()) == TJERR_WARNING &&
         absl::StrContains(tjGetErrorStr2(jpeg.get()), "extraneous bytes");
}

absl::Status Decompress(const Decompressor& jpeg,
                        absl::Span<const std::uint8_t> bytes,
                        absl::string_view name, const Image& size, TJPF format,
                        std::vector<std::uint8_t>& pixels) {
  const int done = tjDecompress2(
      jpeg.get(), bytes.data(), bytes.size(), pixels.data(),
      static_cast<int>(size.width), /*pitch=*/0, static_cast<int>(size.height),
      format, TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS);
  if (done != 0 && !IsHarmless(jpeg)) return Damaged(jpeg, name);
  return absl::OkStatus();
}

// Converts CMYK as Adobe stores it, inverted (255: no ink): each of C, M and Y
// is multiplied by K.
void MultiplyOut(const std::vector<std::uint8_t>& cmyk, Image& image) {
  const std::size_t count = image.pixels.size() / kImageChannels;
  for (std::size_t i = 0; i < count; ++i) {
    const int black = cmyk[4 * i + 3];
    for (std::size_t c = 0; c < kImageChannels; ++c) {
      const int product = cmyk[4 * i + c] * black;
      image.pixels[kImageChannels * i + c] =
          static_cast<std::uint8_t>((product + 127) / 255);
    }
  }
}

}  // namespace

bool IsJpeg(absl::Span<const std::uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 &&
         bytes[2] == 0xff;
}

absl::StatusOr<Image> DecodeJpeg(absl::Span<const std::uint8_t> bytes,
                                 absl::string_view name) {
  const Decompressor jpeg(tjInitDecompress());
  if (jpeg == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": libjpeg-turbo has no memory to decode it"));
  }
  int width = 0, height = 0, sampling = 0, colors = 0;
  if (tjDecompressHeader3(jpeg.get(), bytes.data(), bytes.size(), &width,
                          &height, &sampling, &colors) != 0) {
    return Damaged(jpeg, name);
  }
  TROUPE_ASSIGN_OR_RETURN(Image image, MakeImage(height, width, name));
  if (colors != TJCS_CMYK && colors != TJCS_YCCK) {
    TROUPE_RETURN_IF_ERROR(
        Decompress(jpeg, bytes, name, image, TJPF_RGB, image.pixels));
    return image;
  }
  std::vector<std::uint8_t> cmyk(image.pixels.size() / kImageChannels * 4);
  TROUPE_RETURN_IF_ERROR(Decompress(jpeg, bytes, name, image, TJPF_CMYK, cmyk));
  MultiplyOut(cmyk, image);
  return image;
}

}  // namespace troupe::data
