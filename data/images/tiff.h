// The first image of TIFF files by libtiff; a part of DecodeImage().
//
//   if (IsTiff(bytes)) return DecodeTiff(bytes, name);
//
// It reads grey, palettes, RGB, CMYK and YCbCr, of up to 8 or of 16 bits, in
// strips or tiles, plain or compressed by CCITT, LZW, deflate, JPEG, PackBits
// or Zstandard. PIL's pixels result: the orientation that the file declares is
// applied, and alpha that is multiplied in is divided out before it is dropped.
// Warnings of libtiff about the pixels are errors. Errors: see DecodeImage().

#ifndef DATA_IMAGES_TIFF_H_
#define DATA_IMAGES_TIFF_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/images/decode.h"

namespace troupe::data {

// Whether `bytes` begin as TIFF or BigTIFF files do.
bool IsTiff(absl::Span<const std::uint8_t> bytes);

absl::StatusOr<Image> DecodeTiff(absl::Span<const std::uint8_t> bytes,
                                 absl::string_view name);

}  // namespace troupe::data

#endif  // DATA_IMAGES_TIFF_H_
