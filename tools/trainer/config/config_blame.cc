#include "tools/trainer/config/config_blame.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/field_error.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {
namespace {

// Returns each field that errors may name, with its key.
std::vector<std::pair<std::string, std::string>> KeysOfFields() {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const ConfigKey& key : ConfigKeys()) {
    pairs.emplace_back(key.field.name(), key.name);
    if (key.copied_to == nullptr) continue;
    for (const std::string& copy : key.copied_to()) {
      pairs.emplace_back(copy, key.name);
    }
  }
  return pairs;
}

}  // namespace

std::string PlaceOf(const LoadedConfig& loaded,
                    const std::vector<std::string>& keys) {
  const std::string* first = nullptr;
  for (const std::string& key : keys) {
    if (absl::StartsWith(loaded.Where(key), "--")) return loaded.Where(key);
    if (first == nullptr && loaded.IsSet(key)) first = &key;
  }
  return first == nullptr ? loaded.Whole() : loaded.Where(*first);
}

absl::Status ErrorAt(const LoadedConfig& loaded,
                     const std::vector<std::string>& keys,
                     absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(PlaceOf(loaded, keys), ": ", what));
}

absl::Status AtKeys(const LoadedConfig& loaded, const absl::Status& status) {
  const std::vector<std::pair<std::string, std::string>> known = KeysOfFields();
  std::vector<std::string> keys;
  for (const std::string& field : base::FieldsOf(status)) {
    for (const auto& [name, key] : known) {
      if (name == field) keys.push_back(key);
    }
  }
  const std::string message = absl::StrReplaceAll(status.message(), known);
  if (keys.empty()) {
    return message == status.message() ? status
                                       : base::WithMessage(status, message);
  }
  const std::string place = PlaceOf(loaded, keys);
  absl::string_view what = message;
  // Removes a key that the place repeats: "--set data.path: data.path: ...".
  for (const std::string& key : keys) {
    if (absl::EndsWith(place, key)) absl::ConsumePrefix(&what, key + ": ");
  }
  // The fields are left out: the text has their keys now, and a second call
  // must not put the place in front again.
  return absl::Status(status.code(), absl::StrCat(place, ": ", what));
}

}  // namespace troupe::tools
