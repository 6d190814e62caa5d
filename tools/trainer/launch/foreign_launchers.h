// What launchers that are not ours say in the environment.
//
//   TROUPE_ASSIGN_OR_RETURN(std::optional<ForeignPlacement> found,
//                           FindForeignLauncher(environment));
//   if (found) Show(found->placement.found_by);  // "Open MPI"
//
// To add one, add a row to the table in the source, and its rows to the test
// and to docs/launching.md.

#ifndef TOOLS_TRAINER_LAUNCH_FOREIGN_LAUNCHERS_H_
#define TOOLS_TRAINER_LAUNCH_FOREIGN_LAUNCHERS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/trainer/launch/launchers.h"
#include "tools/trainer/launch/variables.h"

namespace troupe::tools {

// What Placement::found_by calls them.
inline constexpr char kTorchrun[] = "torchrun";
inline constexpr char kOpenMpi[] = "Open MPI";
inline constexpr char kSlurm[] = "Slurm";

struct ForeignPlacement {
  Placement placement;
  // "SLURM_PROCID=1": where process and processes were read. Empty: the
  // launcher does not say it.
  std::string process_from;
  std::string processes_from;
  // Where the master's address was read; empty: it says none, or one that
  // another may replace.
  std::string master_from;
  // What to do where no address is known.
  std::string no_master;
};

// The innermost launcher that there is.
//   kInvalidArgument: its variables contradict each other, or one is missing.
absl::StatusOr<std::optional<ForeignPlacement>> FindForeignLauncher(
    const Variables& environment);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_FOREIGN_LAUNCHERS_H_
