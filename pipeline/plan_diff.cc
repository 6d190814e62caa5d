#include "pipeline/plan_diff.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "pipeline/plan_json.h"

namespace troupe::pipeline {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Returns a part of a long text, as "...part...", around the first difference
// `at`.
std::string Shown(const std::string& text, std::size_t at) {
  if (text.size() <= kDiffValueMax) return text;
  const std::size_t begin = at < kDiffValueMax / 2 ? 0 : at - kDiffValueMax / 4;
  const std::string part = text.substr(begin, kDiffValueMax);
  return absl::StrCat(begin > 0 ? "..." : "", part,
                      begin + part.size() < text.size() ? "..." : "");
}

void ShowBoth(const std::string& path, const OrderedJson& a,
              const OrderedJson& b, std::vector<std::string>& lines) {
  const std::string left = a.dump(), right = b.dump();
  const auto differ =
      std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  const std::size_t at = differ.first - left.begin();
  lines.push_back(
      absl::StrCat(path, ": ", Shown(left, at), ", ", Shown(right, at)));
}

// Returns the name that both list entries have, or else their index.
std::string LabelOf(const OrderedJson& a, const OrderedJson& b,
                    std::size_t number) {
  const auto name = [](const OrderedJson& entry) {
    return entry.is_object() && entry.contains("name")
               ? entry["name"].get<std::string>()
               : "";
  };
  const std::string left = name(a);
  return left.empty() || left != name(b) ? absl::StrCat(number) : left;
}

// Returns a field of a plan's text, which leaves out flags that are not set.
// `other`: value of the field in another text.
OrderedJson FieldOf(const OrderedJson& object, const std::string& key,
                    const OrderedJson& other) {
  if (object.contains(key)) return object[key];
  if (other.is_string()) return "";
  return other.is_number() ? OrderedJson(0) : OrderedJson(false);
}

// Recurses as deep as a plan's text is, which is less than kPlanDepthMax.
void Compare(const std::string& path, const OrderedJson& a,
             const OrderedJson& b, std::vector<std::string>& lines) {
  if (a == b) return;
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items()) {
      Compare(path.empty() ? key : absl::StrCat(path, ".", key), value,
              FieldOf(b, key, value), lines);
    }
    for (const auto& [key, value] : b.items()) {
      if (a.contains(key)) continue;
      Compare(path.empty() ? key : absl::StrCat(path, ".", key),
              FieldOf(a, key, value), value, lines);
    }
  } else if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      Compare(absl::StrCat(path, "[", LabelOf(a[i], b[i], i), "]"), a[i], b[i],
              lines);
    }
  } else {
    ShowBoth(path, a, b, lines);
  }
}

}  // namespace

std::vector<std::string> Diff(const Plan& a, const Plan& b) {
  std::vector<std::string> lines;
  Compare("", OrderedJson::parse(PlanToJson(a)),
          OrderedJson::parse(PlanToJson(b)), lines);
  return lines;
}

}  // namespace troupe::pipeline
