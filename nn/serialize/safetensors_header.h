// Converts the header of a safetensors file between text and list
// (safetensors.h).
//
//   TROUPE_ASSIGN_OR_RETURN(
//       SafetensorsHeader header,
//       ParseSafetensorsHeader(json, /*data_bytes=*/file_size - 8 - n));
//
// Pure functions on bytes. Memory is proportional to the text, whatever its
// contents: deeper nesting than the format needs is not kept.

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
  std::vector<SafetensorsEntry> entries;  // ordered as the data
  SafetensorsMetadata metadata;
};

// Parses a header. kDataLoss, in words without the path: not the JSON of the
// format, a duplicate name, a dtype that the format lacks, offsets that do not
// fit shape and dtype, overlap, leave a gap or do not end with the data.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view json, std::int64_t data_bytes);

// Formats a header, without padding. kInvalidArgument: a text is not UTF-8.
absl::StatusOr<std::string> FormatSafetensorsHeader(
    const SafetensorsHeader& header);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_SAFETENSORS_HEADER_H_
