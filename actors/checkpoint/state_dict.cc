#include "actors/checkpoint/state_dict.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kListedKeysMax = 32;

using TensorSpecs = std::map<std::string, nn::TensorSpec>;

// Adds the differences of one part (model or optimizer) to `keys`. `saved`
// returns the entry that the checkpoint has under a name, or null.
template <typename Find>
void Compare(const TensorSpecs& wanted, const TensorSpecs& optional,
             const std::vector<std::string>& names, Find saved,
             IncompatibleKeys& keys) {
  const auto compare = [&](const std::string& name,
                           const nn::SafetensorsEntry& entry,
                           const nn::TensorSpec& spec) {
    if (entry.Is(spec.dtype, spec.shape)) return;
    keys.mismatched.push_back(absl::StrCat(name, " is ", entry.ToString(),
                                           ", not ", spec.ToString()));
  };
  for (const auto& [name, spec] : wanted) {
    const nn::SafetensorsEntry* const entry = saved(name);
    if (entry == nullptr) {
      keys.missing.push_back(name);
      continue;
    }
    compare(name, *entry, spec);
  }
  for (const auto& [name, spec] : optional) {
    const nn::SafetensorsEntry* const entry = saved(name);
    if (entry != nullptr) compare(name, *entry, spec);
  }
  for (const std::string& name : names) {
    if (wanted.count(name) + optional.count(name) == 0) {
      keys.unexpected.push_back(name);
    }
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

nn::DType SavedDType(const Checkpoint& checkpoint, const nn::Buffer& buffer) {
  const nn::SafetensorsEntry* const entry = checkpoint.FindModel(buffer.name);
  const bool narrow = entry != nullptr && buffer.dtype == nn::DType::kF64 &&
                      entry->dtype == nn::DType::kF32;
  return narrow ? nn::DType::kF32 : buffer.dtype;
}

absl::Status ReadModelTensor(const Checkpoint& checkpoint,
                             const std::string& name, const nn::Tensor& into,
                             nn::Allocator& host) {
  const nn::SafetensorsEntry* const entry = checkpoint.FindModel(name);
  if (entry == nullptr || entry->dtype != nn::DType::kF32 ||
      into.dtype() != nn::DType::kF64) {
    return checkpoint.ReadModel(name, into);
  }
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor narrow,
      nn::Tensor::Create(into.shape(), nn::DType::kF32, host));
  TROUPE_RETURN_IF_ERROR(checkpoint.ReadModel(name, narrow));
  std::copy_n(narrow.data<float>(), narrow.numel(), into.data<double>());
  return absl::OkStatus();
}

IncompatibleKeys FindIncompatibleKeys(const Checkpoint& checkpoint,
                                      const StateDictSpec& wanted) {
  IncompatibleKeys keys;
  Compare(
      wanted.model, /*optional=*/{}, checkpoint.ModelNames(),
      [&](const std::string& name) { return checkpoint.FindModel(name); },
      keys);
  Compare(
      wanted.optimizer, wanted.optional, checkpoint.OptimizerNames(),
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
