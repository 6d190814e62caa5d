// The first frame of GIF files by giflib; a part of DecodeImage().
//
//   if (IsGif(bytes)) return DecodeGif(bytes, name);
//
// The frame lies on the canvas that the file declares, as in PIL: pixels beside
// it have the transparent colour of the frame, or colour 0. Transparency is
// dropped; a colour that the palette lacks is black. Nothing behind the first
// frame is looked at. Errors: see DecodeImage().

#ifndef DATA_IMAGES_GIF_H_
#define DATA_IMAGES_GIF_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/images/decode.h"

namespace troupe::data {

// Whether `bytes` begin as GIF files do.
bool IsGif(absl::Span<const std::uint8_t> bytes);

absl::StatusOr<Image> DecodeGif(absl::Span<const std::uint8_t> bytes,
                                absl::string_view name);

}  // namespace troupe::data

#endif  // DATA_IMAGES_GIF_H_
