// Reads the fields of a JSON object one by one, with errors that name the path
// of a field, as "plan: stages[1].flops is no number".
//
// The first error stays; after it, no field is taken. Not for several threads.

#ifndef PIPELINE_PLAN_OBJECT_H_
#define PIPELINE_PLAN_OBJECT_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace troupe::pipeline {

// Version of the program that wrote a text.
enum class PlanVersion { kThis, kThisOrEarlier };

// Returns kInvalidArgument: "plan: <path> <what>".
absl::Status PlanError(absl::string_view path, absl::string_view what);

// Returns an error if `text` has more than kPlanDepthMax brackets within each
// other: they would cost a parser memory before it finds any other error.
absl::Status CheckPlanDepth(absl::string_view text);

class PlanObject {
 public:
  using Json = nlohmann::json;

  // `path`: that of the object, empty for the whole text. `json` outlives it.
  PlanObject(const Json& json, std::string path, PlanVersion version);

  // Whether the text has the field.
  bool Has(const char* name) const {
    return json_.is_object() && json_.contains(name);
  }
  // Whether to read a field that the first version did not have; false if an
  // earlier version wrote none.
  bool HasLater(const char* name) const {
    return version_ == PlanVersion::kThis || json_.contains(name);
  }
  // Returns the field; null after an error, which a missing field is.
  const Json* Take(const char* name);
  // Returns the path of the field in the whole text.
  std::string PathOf(const char* name) const;

  // Keeps `status` unless an earlier one is an error.
  void Keep(const absl::Status& status) { status_.Update(status); }
  // Returns the first error; an error for a field that was not taken; or ok.
  absl::Status Finish();

 private:
  // Path of the object in an error.
  std::string OwnPath() const { return path_.empty() ? "the text" : path_; }

  const Json& json_;
  const std::string path_;
  const PlanVersion version_;
  absl::Status status_;
  std::set<std::string> taken_;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_PLAN_OBJECT_H_
