// JPEG files by libjpeg-turbo; a part of DecodeImage().
//
//   if (IsJpeg(bytes)) return DecodeJpeg(bytes, name);
//
// It uses the slow, exact DCT and smooth upsampling, the defaults of PIL, which
// give the same bits with and without SIMD. Each warning of the library counts:
// one after which a pixel may be missing or wrong is an error; stray bytes in
// front of a marker, wrong parameters that decoding does not need and
// a missing marker at the end are not. Errors: see DecodeImage().

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
