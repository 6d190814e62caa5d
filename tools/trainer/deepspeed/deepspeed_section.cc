#include "tools/trainer/deepspeed/deepspeed_section.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace troupe::tools {
namespace {

using Json = DeepSpeedSection::Json;

// Limits on the keys that are named, and on the letters of each.
constexpr std::size_t kIgnoredMax = 100, kKeyLettersMax = 80;

bool HasAuto(const Json& value) {
  return value.is_string() && value.get<std::string>() == "auto";
}

}  // namespace

DeepSpeedSection::DeepSpeedSection(const Json* object, std::string path)
    : object_(object), path_(std::move(path)) {}

std::string DeepSpeedSection::NameOf(absl::string_view key) const {
  return absl::StrCat(path_, key);
}

bool DeepSpeedSection::IsAuto(const std::string& key) const {
  const auto found = object_->find(key);
  return found != object_->end() && HasAuto(*found);
}

absl::StatusOr<std::optional<double>> DeepSpeedSection::TakeNumber(
    const std::string& key) {
  const Json* value = Take(key);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return Wrong(key, "is no number; write one, or \"auto\"");
  }
  return std::optional<double>(value->get<double>());
}

absl::StatusOr<std::int64_t> DeepSpeedSection::TakeCount(
    const std::string& key) {
  TROUPE_ASSIGN_OR_RETURN(const std::optional<double> number, TakeNumber(key));
  if (!number) return 0;
  if (*number < 0 || *number > kDeepSpeedCountMax ||
      *number != std::floor(*number)) {
    return Wrong(key, absl::StrCat("= ", *number, " is no integer from 0 to ",
                                   kDeepSpeedCountMax));
  }
  return static_cast<std::int64_t>(*number);
}

absl::StatusOr<std::optional<bool>> DeepSpeedSection::TakeFlag(
    const std::string& key) {
  const Json* value = Take(key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) {
    return Wrong(key, "must be true, false or \"auto\"");
  }
  return std::optional<bool>(value->get<bool>());
}

absl::StatusOr<std::string> DeepSpeedSection::TakeText(const std::string& key) {
  const Json* value = Take(key);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return Wrong(key, "must be a text");
  return value->get<std::string>();
}

absl::StatusOr<std::string> DeepSpeedSection::TakePair(const std::string& key) {
  const Json* value = Take(key);
  if (value == nullptr) return std::string();
  const bool is_pair = value->is_array() && value->size() == 2 &&
                       (*value)[0].is_number() && (*value)[1].is_number();
  if (!is_pair) return Wrong(key, "must be two numbers, in [ and ]");
  return absl::StrFormat("%.17g,%.17g", (*value)[0].get<double>(),
                         (*value)[1].get<double>());
}

absl::StatusOr<DeepSpeedSection> DeepSpeedSection::TakeSection(
    const std::string& key) {
  static const Json* const kEmpty = new Json(Json::object());
  const Json* value = Take(key);
  if (value != nullptr && !value->is_object()) {
    return Wrong(key, "must be an object, in { and }");
  }
  return DeepSpeedSection(value != nullptr ? value : kEmpty,
                          absl::StrCat(NameOf(key), "."));
}

void DeepSpeedSection::AddIgnored(std::vector<std::string>& ignored) const {
  for (const auto& [key, value] : object_->items()) {
    const bool taken =
        std::find(taken_.begin(), taken_.end(), key) != taken_.end();
    if (taken || HasAuto(value) || ignored.size() == kIgnoredMax) continue;
    ignored.push_back(absl::CHexEscape(NameOf(key)).substr(0, kKeyLettersMax));
  }
}

absl::Status DeepSpeedSection::Wrong(absl::string_view key,
                                     absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(NameOf(key), " ", what));
}

const Json* DeepSpeedSection::ValueOf(const std::string& key) const {
  const auto found = object_->find(key);
  const bool given =
      found != object_->end() && !found->is_null() && !HasAuto(*found);
  return given ? &*found : nullptr;
}

const Json* DeepSpeedSection::Take(const std::string& key) {
  taken_.push_back(key);
  return ValueOf(key);
}

}  // namespace troupe::tools
