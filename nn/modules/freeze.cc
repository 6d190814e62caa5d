#include "nn/modules/freeze.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace troupe::nn {
namespace {

// Limit on the names that an error lists.
constexpr int kNamesShownMax = 8;

// Whether any of the parameter's names matches: a shared one has several.
bool Matches(absl::string_view pattern, const Parameter& parameter) {
  if (MatchesPattern(pattern, parameter.name)) return true;
  for (const std::string& name : parameter.other_names) {
    if (MatchesPattern(pattern, name)) return true;
  }
  return false;
}

std::string FirstNames(absl::Span<Parameter* const> parameters) {
  std::string names;
  for (const Parameter* parameter : parameters.first(
           std::min<std::size_t>(parameters.size(), kNamesShownMax))) {
    absl::StrAppend(&names, " ", parameter->name);
  }
  return absl::StrCat(names,
                      parameters.size() > kNamesShownMax ? " and others" : "");
}

}  // namespace

// Greedy, with one position to backtrack to: the last star, which takes one
// character more each time (linear except for texts of one repeated letter).
bool MatchesPattern(absl::string_view pattern, absl::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = absl::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

absl::Status FreezeParameters(Module& model,
                              absl::Span<const std::string> patterns) {
  const std::vector<Parameter*> parameters = model.Parameters();
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (Parameter* parameter : parameters) {
      if (!Matches(pattern, *parameter)) continue;
      parameter->requires_grad = false;
      found = true;
    }
    if (found) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "no parameter is called \"", pattern,
        "\" (* stands for any text); choose among", FirstNames(parameters)));
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn
