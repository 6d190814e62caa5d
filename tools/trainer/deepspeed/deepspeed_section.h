// An object of a DeepSpeed configuration, whose keys are taken one by one. The
// keys that are left are ignored, and named.
//
//   DeepSpeedSection fp16(&json["fp16"], "fp16.");
//   TROUPE_ASSIGN_OR_RETURN(const std::optional<bool> on,
//                           fp16.TakeFlag("enabled"));
//   fp16.AddIgnored(names);                         // {"fp16.hysteresis"}
//
// A value "auto" or null is one that is not given. Errors name the key with its
// path: kInvalidArgument. Refers to the JSON, which must outlive it.

#ifndef TOOLS_TRAINER_DEEPSPEED_DEEPSPEED_SECTION_H_
#define TOOLS_TRAINER_DEEPSPEED_DEEPSPEED_SECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace troupe::tools {

// Limit on steps and numbers of samples.
inline constexpr double kDeepSpeedCountMax = 1e15;

class DeepSpeedSection {
 public:
  using Json = nlohmann::ordered_json;

  // `path`: "optimizer.params."; empty for the whole file.
  DeepSpeedSection(const Json* object, std::string path);

  // Returns the key with its path.
  std::string NameOf(absl::string_view key) const;
  // Whether the key has a value; "auto" is none.
  bool Has(const std::string& key) const { return ValueOf(key) != nullptr; }
  bool IsAuto(const std::string& key) const;

  absl::StatusOr<std::optional<double>> TakeNumber(const std::string& key);
  // Takes an integer from 0 on; 0: not given.
  absl::StatusOr<std::int64_t> TakeCount(const std::string& key);
  absl::StatusOr<std::optional<bool>> TakeFlag(const std::string& key);
  // Takes a text; empty: not given.
  absl::StatusOr<std::string> TakeText(const std::string& key);
  // Takes a list of two numbers as "a,b"; empty: not given.
  absl::StatusOr<std::string> TakePair(const std::string& key);
  // Takes an object; one that is not given is empty.
  absl::StatusOr<DeepSpeedSection> TakeSection(const std::string& key);
  // Removes a key that has no use.
  void Drop(const std::string& key) { taken_.push_back(key); }

  // Appends the names of the keys that were not taken and have a value.
  void AddIgnored(std::vector<std::string>& ignored) const;

 private:
  absl::Status Wrong(absl::string_view key, absl::string_view what) const;
  // Return null for a value that is not given.
  const Json* ValueOf(const std::string& key) const;
  const Json* Take(const std::string& key);

  const Json* object_;
  std::string path_;
  std::vector<std::string> taken_;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DEEPSPEED_DEEPSPEED_SECTION_H_
