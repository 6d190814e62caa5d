#include "data/images/decode.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/foreign_format.h"
#include "data/images/jpeg.h"
#include "data/images/png.h"

namespace troupe::data {

absl::StatusOr<Image> DecodeImage(absl::Span<const std::uint8_t> bytes,
                                  absl::string_view name) {
  if (IsJpeg(bytes)) return DecodeJpeg(bytes, name);
  if (IsPng(bytes)) return DecodePng(bytes, name);
  constexpr absl::string_view kNeither = "neither a JPEG nor a PNG file";
  const absl::string_view head(reinterpret_cast<const char*>(bytes.data()),
                               bytes.size());
  TROUPE_RETURN_IF_ERROR(base::RefuseForeignFormat(head, name, kNeither));
  return absl::InvalidArgumentError(absl::StrCat(
      name, bytes.empty() ? ": an empty file, " : ": ", kNeither,
      bytes.empty() ? "; replace or remove it" : "; convert or remove it"));
}

}  // namespace troupe::data
