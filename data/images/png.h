// PNG files by libspng; a part of DecodeImage().
//
//   if (IsPng(bytes)) return DecodePng(bytes, name);
//
// It accepts every colour type, bit depth and interlacing, and verifies
// checksums of the chunks that have the pixels. It passes over all others.
// Errors: see DecodeImage().

#ifndef DATA_IMAGES_PNG_H_
#define DATA_IMAGES_PNG_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/images/decode.h"

namespace troupe::data {

// Whether `bytes` begin with PNG's signature.
bool IsPng(absl::Span<const std::uint8_t> bytes);

absl::StatusOr<Image> DecodePng(absl::Span<const std::uint8_t> bytes,
                                absl::string_view name);

}  // namespace troupe::data

#endif  // DATA_IMAGES_PNG_H_
