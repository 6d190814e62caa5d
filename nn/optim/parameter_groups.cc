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
        "ParameterGroup::pattern is empty; set one, such as \"*.bias\"");
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
                         absl::Span<const ParameterGroup> groups, Parts parts,
                         absl::Span<const double> first_updates) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < arena.slots().size(); ++i) {
    const ArenaSlot& slot = arena.slots()[i];
    if (slot.bucket == kNoBucket) break;  // frozen ones are last
    Part part;
    part.range = {slot.begin, slot.begin + slot.parameter->shape.numel()};
    part.slot = &slot;
    part.group = GroupOf(*slot.parameter, groups);
    part.first_update = first_updates.empty() ? 0 : first_updates[i];
    end = arena.range(slot.bucket).end;
    if (parts == Parts::kParameters) {
      parts_.push_back(part);
    } else if (parts_.empty()) {
      part.range.begin = 0;
      parts_.push_back(part);
    } else if (Part& last = parts_.back();
               last.group != part.group ||
               last.first_update != part.first_update) {
      // The padding at the end of a part belongs to the parameter before it.
      last.range.end = slot.begin;
      parts_.push_back(part);
    }
  }
  if (parts == Parts::kNeighbours && !parts_.empty()) {
    parts_.back().range.end = end;
  }
}

}  // namespace troupe::nn
