#include "data/images/decode.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/foreign_format.h"
#include "data/images/bmp.h"
#include "data/images/gif.h"
#include "data/images/jpeg.h"
#include "data/images/png.h"
#include "data/images/pnm.h"
#include "data/images/tiff.h"
#include "data/images/webp.h"

namespace troupe::data {
namespace {

constexpr absl::string_view kNoneOfThem =
    "not a JPEG, PNG, WebP, GIF, TIFF, BMP or PNM file";

struct ImageFormat {
  bool (*fits)(absl::Span<const std::uint8_t> bytes);
  absl::StatusOr<Image> (*decode)(absl::Span<const std::uint8_t> bytes,
                                  absl::string_view name);
};

constexpr ImageFormat kImageFormats[] = {
    {IsJpeg, DecodeJpeg}, {IsPng, DecodePng},   {IsWebp, DecodeWebp},
    {IsGif, DecodeGif},   {IsTiff, DecodeTiff}, {IsBmp, DecodeBmp},
    {IsPnm, DecodePnm},
};

}  // namespace

absl::StatusOr<Image> DecodeImage(absl::Span<const std::uint8_t> bytes,
                                  absl::string_view name) {
  for (const ImageFormat& format : kImageFormats) {
    if (format.fits(bytes)) return format.decode(bytes, name);
  }
  const absl::string_view head(reinterpret_cast<const char*>(bytes.data()),
                               bytes.size());
  TROUPE_RETURN_IF_ERROR(base::RefuseForeignFormat(head, name, kNoneOfThem));
  return absl::InvalidArgumentError(absl::StrCat(
      name, bytes.empty() ? ": an empty file, " : ": ", kNoneOfThem,
      bytes.empty() ? "; replace or remove it" : "; convert or remove it"));
}

}  // namespace troupe::data
