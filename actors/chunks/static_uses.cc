#include "actors/chunks/static_uses.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace troupe::actors {
namespace {

// Returns the names of those in `to` that are not in `from`.
std::string Added(const std::vector<nn::Parameter*>& to,
                  const std::vector<nn::Parameter*>& from) {
  std::vector<std::string> names;
  for (const nn::Parameter* parameter : to) {
    if (std::count(from.begin(), from.end(), parameter) == 0) {
      names.push_back(parameter->name);
    }
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

absl::Status StaticUses::Check(const std::vector<nn::Parameter*>& unused,
                               std::int64_t step) const {
  const std::string more = Added(here, unused), less = Added(unused, here);
  if (more.empty() && less.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "static_graph says that all steps use the same parameters, and step ",
      step + 1, more.empty() ? "" : " uses ", more,
      more.empty() || less.empty() ? "" : " and", less.empty() ? "" : " lacks ",
      less, ", unlike the first step; leave static_graph out"));
}

}  // namespace troupe::actors
