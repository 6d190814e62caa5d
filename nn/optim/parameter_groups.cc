#include "nn/optim/parameter_groups.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/name_pattern.h"

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

bool ParameterGroup::Has(const Parameter& parameter) const {
  return matches ? matches(parameter)
                 : base::MatchesPattern(pattern, parameter.name);
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

ParameterGroup NoDecayGroup() {
  ParameterGroup group;
  group.pattern = "(fewer than two axes)";
  group.weight_decay = 0;
  group.matches = [](const Parameter& parameter) {
    return parameter.shape.rank() < 2;
  };
  return group;
}

GroupRanges::GroupRanges(const ParameterArena& arena,
                         absl::Span<const ParameterGroup> groups, Parts parts) {
  if (parts == Parts::kNeighbours) {
    AddNeighbours(arena, groups);
    return;
  }
  for (const ArenaSlot& slot : arena.slots()) {
    if (slot.bucket == kNoBucket) break;  // frozen ones are last
    const std::int64_t elems = slot.parameter->shape.numel();
    parts_.push_back(
        {{slot.begin, slot.begin + elems}, GroupOf(*slot.parameter, groups)});
  }
}

void GroupRanges::AddNeighbours(const ParameterArena& arena,
                                absl::Span<const ParameterGroup> groups) {
  std::int64_t end = 0;
  for (const ArenaSlot& slot : arena.slots()) {
    if (slot.bucket == kNoBucket) break;  // frozen ones are last
    const int group = GroupOf(*slot.parameter, groups);
    // The padding at the end of a part belongs to the parameter before it.
    if (parts_.empty() || parts_.back().group != group) {
      if (!parts_.empty()) parts_.back().range.end = slot.begin;
      parts_.push_back({{parts_.empty() ? 0 : slot.begin, slot.begin}, group});
    }
    end = arena.range(slot.bucket).end;
  }
  if (!parts_.empty()) parts_.back().range.end = end;
}

}  // namespace troupe::nn
