// The header of a safetensors file as text <-> as a list (safetensors.h).
//
//   TROUPE_ASSIGN_OR_RETURN(
//       SafetensorsHeader header,
//       ParseSafetensorsHeader(json, /*data_bytes=*/file_size - 8 - n));
//
// Pure functions on bytes. Memory stays in proportion to the text, whatever
// it says: nothing nested deeper than the format needs is ever kept.

#ifndef NN_SERIALIZE_SAFETENSORS_HEADER_H_
#define NN_SERIALIZE_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/serialize/safetensors.h"

namespace troupe::nn {

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of the data
  SafetensorsMetadata metadata;
};

// kDataLoss, in words without the path: not the JSON of the format, a name
// twice, an unknown dtype, offsets that do not fit shape and dtype, overlap,
// leave a gap or do not end with the data.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view json, std::int64_t data_bytes);

// Without padding. kInvalidArgument: a text that is not UTF-8.
absl::StatusOr<std::string> FormatSafetensorsHeader(
    const SafetensorsHeader& header);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_SAFETENSORS_HEADER_H_
