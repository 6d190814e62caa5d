#include "actors/hooks/hooks.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/hooks/gathered_reduction.h"
#include "nn/tensor/dtype.h"

namespace troupe::actors {
namespace {

std::vector<CommunicationHook> AllHooks() {
  return {
      GatherIn(nn::DType::kBF16),
      GatherIn(nn::DType::kF16),
  };
}

}  // namespace

std::vector<std::string> HookNames() {
  std::vector<std::string> names = {kNoHook};
  for (const CommunicationHook& hook : AllHooks()) names.push_back(hook.name);
  return names;
}

absl::StatusOr<CommunicationHook> HookNamed(absl::string_view name) {
  if (name == kNoHook) return CommunicationHook();
  for (const CommunicationHook& hook : AllHooks()) {
    if (hook.name == name) return hook;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "must be one of \"", absl::StrJoin(HookNames(), "\", \""), "\""));
}

}  // namespace troupe::actors
