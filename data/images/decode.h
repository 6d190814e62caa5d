// Decodes the bytes of a JPEG, PNG, WebP, GIF, TIFF, BMP or PNM (PBM, PGM, PPM)
// file to pixels.
//
//   TROUPE_ASSIGN_OR_RETURN(const Image image, DecodeImage(bytes, "cat.jpg"));
//   image.at(y, x)[0];                       // red, 0..255
//
// The format follows from the first bytes of a file, not from its name. All
// images become RGB with 8 bits, as in PIL's convert("RGB"): grey is repeated,
// alpha dropped, CMYK multiplied out. Of 16 bits the upper 8 are kept (in PNM
// the value is rounded); PIL does so for colours, but clips plain grey at 255
// (its mode "I;16"), which makes most of such an image white. Of several frames
// or pages the first is read. Colour profiles, gamma and EXIF's orientation are
// ignored (that of a TIFF file, which is a part of the format, is not), and so
// is everything else in a file that has no pixels.
//
// It uses libjpeg-turbo (libjpeg's interface, since TurboJPEG reports only the
// first of several warnings), libspng, libwebp, giflib and libtiff. Files are
// not trusted: the size that a header declares is checked before memory is
// allocated. Threads: any number may decode at once.

#ifndef DATA_IMAGES_DECODE_H_
#define DATA_IMAGES_DECODE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace troupe::data {

inline constexpr std::int64_t kImageChannels = 3;
// Limit on the pixels of an image, height * width: 200 MB when decoded.
inline constexpr std::int64_t kImagePixelsMax = std::int64_t{1} << 26;
// Limit on the scans of a progressive JPEG (as in TurboJPEG); real ones have
// some ten. Without a limit a small file could take minutes.
inline constexpr int kJpegScansMax = 500;

struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  // [H, W, 3]

  const std::uint8_t* at(std::int64_t y, std::int64_t x) const {
    return pixels.data() + (y * width + x) * kImageChannels;
  }
};

// Errors name `name`.
//   kInvalidArgument:   none of these formats; names the format if it is known
//                       (base/foreign_format.h).
//   kDataLoss:          damaged or truncated; says what the library found.
//   kUnimplemented:     a kind of a format that is not decoded, such as a JPEG
//                       of 12 bits or a TIFF of floats.
//   kResourceExhausted: more than kImagePixelsMax pixels, or no memory.
absl::StatusOr<Image> DecodeImage(absl::Span<const std::uint8_t> bytes,
                                  absl::string_view name);

}  // namespace troupe::data

#endif  // DATA_IMAGES_DECODE_H_
