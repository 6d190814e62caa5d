// Functions on a table of kinds: optimizers, losses or models, one of which a
// key of the configuration names. A row of a table is a struct with a `name`.
//
//   struct Kind {
//     const char* name;
//     std::vector<std::string> keys;  // for CheckKeysOfKind() only
//   };
//   const std::vector<Kind> kinds = {{"sgd", {"momentum"}}, {"adam", {"eps"}}};
//   KindNames(kinds);               // {"sgd", "adam"}
//   KindNamed(kinds, "adam").keys;  // {"eps"}
//
// Header-only, since each table has a struct of its own.

#ifndef TOOLS_TRAINER_CONFIG_KIND_TABLE_H_
#define TOOLS_TRAINER_CONFIG_KIND_TABLE_H_

#include <iterator>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {

// Returns the names, in the order of the rows.
template <typename Kinds>
std::vector<std::string> KindNames(const Kinds& kinds) {
  std::vector<std::string> names;
  for (const auto& kind : kinds) names.push_back(kind.name);
  return names;
}

// Returns the row of a name that the rule of the key accepts (OneOf()).
template <typename Kinds>
const auto& KindNamed(const Kinds& kinds, absl::string_view name) {
  for (const auto& kind : kinds) {
    if (name == kind.name) return kind;
  }
  TROUPE_CHECK(false, "the table of keys accepts no other kind");
  return *std::begin(kinds);
}

// Checks that keys which the kind `name` does not use have the values that they
// have in `defaults`. The keys of a row lack their section, `section`; two rows
// may have the same key.
//   kInvalidArgument, with the place of the key and the kinds that use it.
template <typename Kinds>
absl::Status CheckKeysOfKind(const LoadedConfig& loaded,
                             const LoadedConfig& defaults,
                             const std::string& section, const Kinds& kinds,
                             const std::string& name) {
  const std::vector<std::string>& used = KindNamed(kinds, name).keys;
  for (const auto& kind : kinds) {
    for (const std::string& key : kind.keys) {
      const std::string full = absl::StrCat(section, ".", key);
      if (absl::c_linear_search(used, key)) continue;
      if (IsDefault(loaded, defaults, full)) continue;
      std::vector<std::string> users;
      for (const auto& user : kinds) {
        if (absl::c_linear_search(user.keys, key)) users.push_back(user.name);
      }
      return ErrorAt(loaded, {full},
                     absl::StrCat(full, " is for ", section, ".kind = \"",
                                  absl::StrJoin(users, "\" or \""),
                                  "\", and the kind is \"", name,
                                  "\"; remove it, or set that kind"));
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_KIND_TABLE_H_
