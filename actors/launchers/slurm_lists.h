// Readers of Slurm's lists of hosts and of numbers.
//
//   FirstHost("n[01-04,9],m3");    // "n01"
//   TasksOnNode("2(x3),1", 3);     // 1

#ifndef ACTORS_LAUNCHERS_SLURM_LISTS_H_
#define ACTORS_LAUNCHERS_SLURM_LISTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::actors {

// Returns the first host of a list such as "rack[0-1]n[01-04],m3".
//   kInvalidArgument: `hosts` has another form.
absl::StatusOr<std::string> FirstHost(absl::string_view hosts);

// Returns entry `node` (0 ...) of a list of counts such as "2(x3),1".
//   kInvalidArgument: `counts` has another form, or is too short.
absl::StatusOr<int> TasksOnNode(absl::string_view counts, int node);

}  // namespace troupe::actors

#endif  // ACTORS_LAUNCHERS_SLURM_LISTS_H_
