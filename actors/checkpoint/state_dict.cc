#include "actors/checkpoint/state_dict.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kListedKeysMax = 32;

// Adds the differences of one part (model or optimizer) to `keys`. `saved`
// returns the entry that the checkpoint has under a name, or null.
template <typename Find>
void Compare(const std::map<std::string, nn::TensorSpec>& wanted,
             const std::vector<std::string>& names, Find saved,
             IncompatibleKeys& keys) {
  for (const auto& [name, spec] : wanted) {
    const nn::SafetensorsEntry* const entry = saved(name);
    if (entry == nullptr) {
      keys.missing.push_back(name);
      continue;
    }
    if (entry->Is(spec.dtype, spec.shape)) continue;
    keys.mismatched.push_back(absl::StrCat(name, " is ", entry->ToString(),
                                           ", not ", spec.ToString()));
  }
  for (const std::string& name : names) {
    if (wanted.count(name) == 0) keys.unexpected.push_back(name);
  }
}

}  // namespace

const std::string& SavedName(const Checkpoint& checkpoint,
                             const nn::Parameter& parameter) {
  if (checkpoint.FindModel(parameter.name) != nullptr) return parameter.name;
  for (const std::string& other : parameter.other_names) {
    if (checkpoint.FindModel(other) != nullptr) return other;
  }
  return parameter.name;
}

IncompatibleKeys FindIncompatibleKeys(const Checkpoint& checkpoint,
                                      const StateDictSpec& wanted) {
  IncompatibleKeys keys;
  Compare(
      wanted.model, checkpoint.ModelNames(),
      [&](const std::string& name) { return checkpoint.FindModel(name); },
      keys);
  Compare(
      wanted.optimizer, checkpoint.OptimizerNames(),
      [&](const std::string& name) { return checkpoint.FindOptimizer(name); },
      keys);
  return keys;
}

std::string ListKeys(absl::Span<const std::string> keys) {
  std::string list = absl::StrJoin(keys.subspan(0, kListedKeysMax), ", ");
  if (keys.size() > kListedKeysMax) {
    absl::StrAppend(&list, " and ", keys.size() - kListedKeysMax, " more");
  }
  return list;
}

}  // namespace troupe::actors
