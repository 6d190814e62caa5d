// WebP files by libwebp; a part of DecodeImage().
//
//   if (IsWebp(bytes)) return DecodeWebp(bytes, name);
//
// It reads lossy and lossless images. An animation gives its first frame, on
// the whole canvas: pixels beside the frame are black. Errors: see
// DecodeImage().

#ifndef DATA_IMAGES_WEBP_H_
#define DATA_IMAGES_WEBP_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/images/decode.h"

namespace troupe::data {

// Whether `bytes` begin with the header of a RIFF file of WebP.
bool IsWebp(absl::Span<const std::uint8_t> bytes);

absl::StatusOr<Image> DecodeWebp(absl::Span<const std::uint8_t> bytes,
                                 absl::string_view name);

}  // namespace troupe::data

#endif  // DATA_IMAGES_WEBP_H_
