// Readers of a JSON object's fields that check their types, for untrusted
// files.
//
//   std::int64_t step = 0;
//   TROUPE_RETURN_IF_ERROR(ReadField(json, "step", step));
//
// Errors are kDataLoss and name the field: `field "step" is missing or not an
// integer in range`.

#ifndef ACTORS_CHECKPOINT_JSON_FIELDS_H_
#define ACTORS_CHECKPOINT_JSON_FIELDS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace troupe::actors {

// Parses an object.
//   kDataLoss: not JSON, or not an object.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text);

// Limit on counts: a double, in which other readers of JSON keep numbers, holds
// them exactly. Twice a count, or a thousand times one, fits 64 bits.
inline constexpr std::int64_t kJsonCountMax = std::int64_t{1} << 53;

// Sets `value` to the field; one overload for each type. A signed one is a
// count from 0 to kJsonCountMax; an unsigned one, such as a seed, has 64 bits.
absl::Status ReadField(const nlohmann::json& object, const char* name,
                       std::int64_t& value);
absl::Status ReadField(const nlohmann::json& object, const char* name,
                       std::uint64_t& value);
absl::Status ReadField(const nlohmann::json& object, const char* name,
                       double& value);
absl::Status ReadField(const nlohmann::json& object, const char* name,
                       bool& value);
absl::Status ReadField(const nlohmann::json& object, const char* name,
                       std::string& value);
// An object of strings.
absl::Status ReadField(const nlohmann::json& object, const char* name,
                       std::map<std::string, std::string>& value);
// Returns the field `name`, an object within `object`.
absl::StatusOr<const nlohmann::json*> ObjectField(const nlohmann::json& object,
                                                  const char* name);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_JSON_FIELDS_H_
