#include "nn/optim/parameter_groups.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace troupe::nn {
namespace {

int GroupOf(const Parameter& parameter,
            absl::Span<const ParameterGroup> groups) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].Has(parameter)) return static_cast<int>(i);
  }
  return GroupRanges::kNoGroup;
}

}  // namespace

bool MatchesPattern(absl::string_view pattern, absl::string_view name) {
  // Where to go on when the characters differ: the last star takes one more.
  std::size_t star = absl::string_view::npos, taken = 0;
  std::size_t p = 0, n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() &&
               (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool ParameterGroup::Has(const Parameter& parameter) const {
  return matches ? matches(parameter) : MatchesPattern(pattern, parameter.name);
}

absl::Status ParameterGroup::Validate() const {
  if (pattern.empty() && !matches) {
    return absl::InvalidArgumentError(
        "a parameter group needs a pattern, such as \"*.bias\"");
  }
  for (const double value : {lr_factor, weight_decay.value_or(0)}) {
    if (value >= 0 && std::isfinite(value)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("parameter group \"", pattern,
                     "\": lr_factor and weight_decay are at "
                     "least 0, got ",
                     value));
  }
  return absl::OkStatus();
}

GroupRanges::GroupRanges(const ParameterArena& arena,
                         absl::Span<const ParameterGroup> groups) {
  std::int64_t end = 0;
  for (const ArenaSlot& slot : arena.slots()) {
    if (slot.bucket == kNoBucket) break;  // frozen ones lie behind all buckets
    const int group = GroupOf(*slot.parameter, groups);
    // A part of a bucket's end is padding: it belongs to what lies before it.
    if (parts_.empty() || parts_.back().group != group) {
      if (!parts_.empty()) parts_.back().range.end = slot.begin;
      parts_.push_back({{parts_.empty() ? 0 : slot.begin, slot.begin}, group});
    }
    end = arena.range(slot.bucket).end;
  }
  if (!parts_.empty()) parts_.back().range.end = end;
}

}  // namespace troupe::nn
