// Fields of a JSON object from a file nobody vouches for.
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

// kDataLoss: not JSON, or not an object.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text);

// Limit on counts: what a double holds exactly, as other readers of JSON keep
// numbers. Twice as many, or the product of one and a thousand, fit 64 bits.
inline constexpr std::int64_t kJsonCountMax = std::int64_t{1} << 53;

// A count from 0 to kJsonCountMax; a seed of 64 bits.
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
// The object itself, or the error.
absl::StatusOr<const nlohmann::json*> ObjectField(const nlohmann::json& object,
                                                  const char* name);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_JSON_FIELDS_H_
