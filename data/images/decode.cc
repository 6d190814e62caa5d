#include "data/images/decode.h"

#include "absl/strings/str_cat.h"
#include "data/images/jpeg.h"
#include "data/images/png.h"

namespace troupe::data {

absl::StatusOr<Image> DecodeImage(absl::Span<const std::uint8_t> bytes,
                                  absl::string_view name) {
  if (IsJpeg(bytes)) return DecodeJpeg(bytes, name);
  if (IsPng(bytes)) return DecodePng(bytes, name);
  return absl::InvalidArgumentError(
      absl::StrCat(name,
                   ": neither a JPEG nor a PNG file; convert or remove "
                   "it"));
}

}  // namespace troupe::data
