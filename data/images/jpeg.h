// JPEG files by libjpeg-turbo; a part of DecodeImage().
//
//   if (IsJpeg(bytes)) return DecodeJpeg(bytes, name);
//
// It uses the slow, exact DCT and smooth upsampling, the defaults of PIL, which
// give the same bits with and without SIMD. A file that ends early is an error;
// stray bytes between its parts are not. Errors: see DecodeImage().

#ifndef DATA_IMAGES_JPEG_H_
#define DATA_IMAGES_JPEG_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/images/decode.h"

namespace troupe::data {

// Whether `bytes` begin as JPEG files do.
bool IsJpeg(absl::Span<const std::uint8_t> bytes);

absl::StatusOr<Image> DecodeJpeg(absl::Span<const std::uint8_t> bytes,
                                 absl::string_view name);

}  // namespace troupe::data

#endif  // DATA_IMAGES_JPEG_H_
