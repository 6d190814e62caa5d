// The communication hooks by name.
//
//   TROUPE_ASSIGN_OR_RETURN(spec.hook, HookNamed("gather_bf16"));
//
// A new hook is a pair of files in this folder and a line in hooks.cc; keys and
// help of the trainer follow from it.

#ifndef ACTORS_HOOKS_HOOKS_H_
#define ACTORS_HOOKS_HOOKS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "actors/spec/bucket_reduction.h"

namespace troupe::actors {

// The name of a job without a hook.
inline constexpr char kNoHook[] = "none";

// Returns kNoHook and the names of all hooks.
std::vector<std::string> HookNames();

// Returns the hook with this name; one without a name for kNoHook.
//   kInvalidArgument: there is none; lists the names.
absl::StatusOr<CommunicationHook> HookNamed(absl::string_view name);

}  // namespace troupe::actors

#endif  // ACTORS_HOOKS_HOOKS_H_
