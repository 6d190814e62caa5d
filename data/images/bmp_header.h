// Headers of BMP files: sizes, palette and masks; a part of DecodeBmp().
//
//   TROUPE_ASSIGN_OR_RETURN(const BmpHeader header,
//                           ReadBmpHeader(bytes, name));
//   header.palette[7];                       // {red, green, blue}
//
// Source: Microsoft, "Bitmap Header Types" (BITMAPCOREHEADER to
// BITMAPV5HEADER). Errors: see DecodeImage().

#ifndef DATA_IMAGES_BMP_HEADER_H_
#define DATA_IMAGES_BMP_HEADER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/images/decode.h"

namespace troupe::data {

enum class BmpCoding { kPlain, kRuns8, kRuns4 };

struct BmpHeader {
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool is_top_down = false;
  int bits = 0;  // size of a pixel: 1, 4, 8, 16, 24 or 32
  BmpCoding coding = BmpCoding::kPlain;
  // Bits of red, green and blue in a pixel of 16, 24 or 32 bits; each set is
  // contiguous.
  std::array<std::uint32_t, kImageChannels> masks = {};
  // Colours of pixels of up to 8 bits; those that the file lacks are black.
  std::array<std::array<std::uint8_t, kImageChannels>, 256> palette = {};
  std::size_t pixels_at = 0;  // byte of the file
};

// Returns the header of a file for which IsBmp() is true. Neither the size nor
// the place of the pixels are compared with the size of the file.
absl::StatusOr<BmpHeader> ReadBmpHeader(absl::Span<const std::uint8_t> bytes,
                                        absl::string_view name);

}  // namespace troupe::data

#endif  // DATA_IMAGES_BMP_HEADER_H_
