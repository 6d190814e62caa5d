#include "pipeline/plan_object.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "pipeline/plan_json.h"

namespace troupe::pipeline {

absl::Status PlanError(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("plan: ", path, " ", what));
}

absl::Status CheckPlanDepth(absl::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[')) {
      if (++depth <= kPlanDepthMax) continue;
      return PlanError("the text", absl::StrCat("has more than ", kPlanDepthMax,
                                                " brackets within each other"));
    } else if (!quoted && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return absl::OkStatus();
}

PlanObject::PlanObject(const Json& json, std::string path, PlanVersion version)
    : json_(json), path_(std::move(path)), version_(version) {
  if (!json.is_object()) Keep(PlanError(OwnPath(), "is no object"));
}

const PlanObject::Json* PlanObject::Take(const char* name) {
  taken_.insert(name);
  if (!status_.ok()) return nullptr;
  const auto found = json_.find(name);
  if (found != json_.end()) return &*found;
  Keep(PlanError(PathOf(name), "is missing"));
  return nullptr;
}

std::string PlanObject::PathOf(const char* name) const {
  return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
}

absl::Status PlanObject::Finish() {
  if (!status_.ok()) return status_;
  for (const auto& [key, value] : json_.items()) {
    if (taken_.count(key) > 0) continue;
    Keep(PlanError(OwnPath(),
                   absl::StrCat("has the unknown field \"",
                                absl::CHexEscape(key.substr(0, 80)), "\"")));
  }
  return status_;
}

}  // namespace troupe::pipeline
