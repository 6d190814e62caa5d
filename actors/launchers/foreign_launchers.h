// Reads the environment variables that other launchers than ours set.
//
//   TROUPE_ASSIGN_OR_RETURN(std::optional<ForeignPlacement> found,
//                           FindForeignLauncher(environment));
//   if (found) Show(found->placement.found_by);  // "Open MPI"
//
// To add one, add a row to a table in the source (kNumbers, if it only numbers
// its processes), and its rows to the test and to docs/launching.md. An
// environment that has only some of a launcher's variables is refused, here or
// by half_launched.h.

#ifndef ACTORS_LAUNCHERS_FOREIGN_LAUNCHERS_H_
#define ACTORS_LAUNCHERS_FOREIGN_LAUNCHERS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "actors/launchers/launchers.h"
#include "actors/launchers/variables.h"

namespace troupe::actors {

// Names of launchers in Placement::found_by.
inline constexpr char kTorchrun[] = "torchrun";
inline constexpr char kOpenMpi[] = "Open MPI";
inline constexpr char kSlurm[] = "Slurm";

struct ForeignPlacement {
  Placement placement;
  // Variables that process and processes were read from: "SLURM_PROCID=1".
  // Empty: the launcher does not set them.
  std::string process_from;
  std::string processes_from;
  // Variables that the master's address was read from. Empty: the launcher sets
  // none, or one that options may replace.
  std::string master_from;
  // Advice to the user if no address is known.
  std::string no_master = "add --master=host:port with the host of process 0";
};

// Returns the innermost launcher; none if there is no launcher.
//   kInvalidArgument: its variables contradict each other, or one is missing.
absl::StatusOr<std::optional<ForeignPlacement>> FindForeignLauncher(
    const Variables& environment);

}  // namespace troupe::actors

#endif  // ACTORS_LAUNCHERS_FOREIGN_LAUNCHERS_H_
