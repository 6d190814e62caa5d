// PBM, PGM and PPM files of Netpbm ("PNM"); a part of DecodeImage().
//
//   if (IsPnm(bytes)) return DecodePnm(bytes, name);
//
// It reads P1 to P6: bits, grey and colours, as text or bytes, of any largest
// value. Values are scaled to 0..255 and rounded to even, as in PIL, those of
// more than 8 bits too. The format is a few lines of text before the pixels, so
// that the reader is Troupe's own (Netpbm's manual, "pbm", "pgm" and "ppm").
// Only the first image of a file is read. Errors: see DecodeImage().

#ifndef DATA_IMAGES_PNM_H_
#define DATA_IMAGES_PNM_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/images/decode.h"

namespace troupe::data {

// Whether `bytes` begin as PNM files do: "P1" to "P6", then a space or comment.
bool IsPnm(absl::Span<const std::uint8_t> bytes);

absl::StatusOr<Image> DecodePnm(absl::Span<const std::uint8_t> bytes,
                                absl::string_view name);

}  // namespace troupe::data

#endif  // DATA_IMAGES_PNM_H_
