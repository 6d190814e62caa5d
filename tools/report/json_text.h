// Reads untrusted JSON: parses it with a limit on depth, and checks each field
// when it is read.
//
//   TROUPE_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text));
//   TROUPE_ASSIGN_OR_RETURN(std::int64_t steps, IntegerAt(json, "step",
//                           /*min=*/0, /*max=*/1000));
//
// Errors (kInvalidArgument) name the line or the field. Threads: any.

#ifndef TOOLS_REPORT_JSON_TEXT_H_
#define TOOLS_REPORT_JSON_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace troupe::tools {

// Limit on the depth of nested brackets.
inline constexpr int kJsonDepthMax = 16;

// Returns the error "<part> <what>" (kInvalidArgument) about a part of a file.
// The reader of the file adds its path, and what to do.
absl::Status WrongPart(absl::string_view part, absl::string_view what);

// Parses `text` as one JSON value. An error begins with "line 3 ", counted
// from `first_line`. `keep` may drop parts of the value while they are read;
// null keeps all.
absl::StatusOr<nlohmann::json> ParseJson(
    absl::string_view text, std::int64_t first_line = 1,
    const nlohmann::json::parser_callback_t& keep = nullptr);

// Return a field of an object. The error names the field: it is missing, or is
// not a whole number from `min` to `max`, not a finite number, or not a string
// of at most `bytes_max` bytes.
absl::StatusOr<std::int64_t> IntegerAt(const nlohmann::json& object,
                                       const char* field, std::int64_t min,
                                       std::int64_t max);
absl::StatusOr<double> NumberAt(const nlohmann::json& object,
                                const char* field);
absl::StatusOr<std::string> TextAt(const nlohmann::json& object,
                                   const char* field, std::size_t bytes_max);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_JSON_TEXT_H_
