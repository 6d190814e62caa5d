// JSON that nobody vouches for: parsed with a limit on depth, and fields that
// are checked where they are read.
//
//   TROUPE_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text));
//   TROUPE_ASSIGN_OR_RETURN(std::int64_t steps, IntegerAt(json, "step",
//                           /*min=*/0, /*max=*/1000));
//
// Errors (kInvalidArgument) name the line, or the field. Threads: any.

#ifndef TOOLS_REPORT_JSON_TEXT_H_
#define TOOLS_REPORT_JSON_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace troupe::tools {

// Limit on brackets within each other.
inline constexpr int kJsonDepthMax = 16;

// `text` as one JSON value. An error begins with "line 3: ", counted from
// `first_line`. `keep` may drop parts of the value when they are read; null
// keeps all.
absl::StatusOr<nlohmann::json> ParseJson(
    absl::string_view text, std::int64_t first_line = 1,
    const nlohmann::json::parser_callback_t& keep = nullptr);

// The field of an object. An error names it: it is missing, or no whole number
// from `min` to `max`, no finite number, no text of at most `bytes_max`.
absl::StatusOr<std::int64_t> IntegerAt(const nlohmann::json& object,
                                       const char* field, std::int64_t min,
                                       std::int64_t max);
absl::StatusOr<double> NumberAt(const nlohmann::json& object,
                                const char* field);
absl::StatusOr<std::string> TextAt(const nlohmann::json& object,
                                   const char* field, std::size_t bytes_max);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_JSON_TEXT_H_
