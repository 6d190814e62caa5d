// BMP files of Windows and OS/2; a part of DecodeImage().
//
//   if (IsBmp(bytes)) return DecodeBmp(bytes, name);
//
// It reads 1, 4 and 8 bits with a palette, plain or run-length encoded, and 16,
// 24 and 32 bits, with or without masks; rows in either order. The format is
// simple, and Debian's libraries for it are parts of large ones, so that the
// reader is Troupe's own. PIL's pixels result: alpha is dropped, a colour that
// the palette lacks is black, and pixels that runs leave out have colour 0.
// Errors: see DecodeImage().

#ifndef DATA_IMAGES_BMP_H_
#define DATA_IMAGES_BMP_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/images/decode.h"

namespace troupe::data {

// Whether `bytes` begin as BMP files do: "BM", and the size of a header of less
// than 256 bytes behind the file header.
bool IsBmp(absl::Span<const std::uint8_t> bytes);

absl::StatusOr<Image> DecodeBmp(absl::Span<const std::uint8_t> bytes,
                                absl::string_view name);

}  // namespace troupe::data

#endif  // DATA_IMAGES_BMP_H_
