#include "tools/report/json_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace troupe::tools {
namespace {

using Json = nlohmann::json;

}  // namespace

absl::Status WrongPart(absl::string_view part, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(part, " ", what));
}

absl::StatusOr<Json> ParseJson(absl::string_view text, std::int64_t first_line,
                               const Json::parser_callback_t& keep) {
  bool is_deep = false;
  const auto filter = [&](int depth, Json::parse_event_t event, Json& value) {
    is_deep = is_deep || depth > kJsonDepthMax;
    return !is_deep && (keep == nullptr || keep(depth, event, value));
  };
  try {
    Json json = Json::parse(text.begin(), text.end(), filter);
    if (!is_deep) return json;
    return WrongPart(absl::StrCat("line ", first_line),
                     absl::StrCat("has more than ", kJsonDepthMax,
                                  " brackets within each other"));
  } catch (const Json::parse_error& error) {
    const std::size_t at = std::min(error.byte, text.size());
    const std::int64_t line =
        first_line + std::count(text.begin(), text.begin() + at, '\n');
    return WrongPart(absl::StrCat("line ", line),
                     absl::StrCat("is no JSON from byte ", at, " on"));
  }
}

absl::StatusOr<std::int64_t> IntegerAt(const Json& object, const char* field,
                                       std::int64_t min, std::int64_t max) {
  const auto found = object.find(field);
  if (found == object.end()) return WrongPart(field, "is missing");
  if (!found->is_number_integer())
    return WrongPart(field, "is no whole number");
  const bool fits = !found->is_number_unsigned() ||
                    found->get<std::uint64_t>() <= std::uint64_t{INT64_MAX};
  const std::int64_t value = fits ? found->get<std::int64_t>() : INT64_MAX;
  if (fits && value >= min && value <= max) return value;
  return WrongPart(field, absl::StrCat("is not from ", min, " to ", max));
}

absl::StatusOr<double> NumberAt(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end()) return WrongPart(field, "is missing");
  if (!found->is_number()) return WrongPart(field, "is no number");
  const double value = found->get<double>();
  if (!std::isfinite(value)) return WrongPart(field, "is not finite");
  return value;
}

absl::StatusOr<std::string> TextAt(const Json& object, const char* field,
                                   std::size_t bytes_max) {
  const auto found = object.find(field);
  if (found == object.end()) return WrongPart(field, "is missing");
  if (!found->is_string()) return WrongPart(field, "is no text");
  std::string text = found->get<std::string>();
  if (text.size() <= bytes_max) return text;
  return WrongPart(field, absl::StrCat("has more than ", bytes_max, " bytes"));
}

}  // namespace troupe::tools
