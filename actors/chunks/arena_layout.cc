#include "actors/chunks/arena_layout.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "actors/spec/job_spec.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::actors {
namespace {

using ByName = absl::flat_hash_map<std::string, nn::Parameter*>;

absl::Status OtherModel(int stage, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      base::FieldName<&JobSpec::model>(),
      " made another model than the one that was planned: ", what, " in stage ",
      stage, "; it must make the same model each time"));
}

// Checks that the factory made the same parameters as for the plan. They
// differ, for example, if a module declares parameters only in its forward.
absl::Status CheckSameModel(const pipeline::StagePlan& stage, int number,
                            const ByName& by_name) {
  for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
    const std::string& name = stage.parameters[i];
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      return OtherModel(number, absl::StrCat("there is no ", name));
    }
    const nn::Parameter& parameter = *found->second;
    if (parameter.shape.numel() != stage.parameter_elems[i] ||
        parameter.dtype != stage.parameter_dtypes[i]) {
      return OtherModel(
          number, absl::StrCat(name, " is ", nn::DTypeName(parameter.dtype),
                               parameter.shape.ToString(), ", not ",
                               stage.parameter_elems[i], " elements of ",
                               nn::DTypeName(stage.parameter_dtypes[i])));
    }
  }
  if (by_name.size() == stage.parameters.size()) return absl::OkStatus();
  const std::set<std::string> planned(stage.parameters.begin(),
                                      stage.parameters.end());
  for (const auto& [name, parameter] : by_name) {
    if (planned.count(name) > 0) continue;
    return OtherModel(number, absl::StrCat("there is a ", name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ArenaLayout> LayOutArenas(
    const pipeline::StagePlan& stage, int number,
    const std::set<std::string>& counted_elsewhere,
    const std::vector<nn::Parameter*>& parameters) {
  ByName by_name;
  for (nn::Parameter* parameter : parameters) {
    by_name[parameter->name] = parameter;
  }
  TROUPE_RETURN_IF_ERROR(CheckSameModel(stage, number, by_name));
  ArenaLayout layout;
  std::vector<nn::DType> dtypes;  // indexed by arena
  const auto arena_of = [&](const nn::Parameter& parameter) {
    const auto found = std::find(dtypes.begin(), dtypes.end(), parameter.dtype);
    const auto arena = static_cast<int>(found - dtypes.begin());
    if (found == dtypes.end()) {
      dtypes.push_back(parameter.dtype);
      layout.arenas.emplace_back();
    }
    return arena;
  };
  for (const std::vector<int>& bucket : stage.buckets) {
    std::vector<nn::Parameter*> chosen;
    for (int i : bucket) chosen.push_back(by_name[stage.parameters[i]]);
    const int number_of_arena = arena_of(*chosen[0]);
    ArenaLayout::Arena& arena = layout.arenas[number_of_arena];
    const auto k = static_cast<int>(arena.buckets.size());
    layout.places.push_back({number_of_arena, k});
    if (counted_elsewhere.count(chosen[0]->name) > 0) arena.copied.push_back(k);
    arena.buckets.push_back(std::move(chosen));
  }
  for (int i : stage.frozen) {
    nn::Parameter* const parameter = by_name[stage.parameters[i]];
    layout.arenas[arena_of(*parameter)].frozen.push_back(parameter);
  }
  if (layout.arenas.empty()) layout.arenas.emplace_back();
  return layout;
}

}  // namespace troupe::actors
