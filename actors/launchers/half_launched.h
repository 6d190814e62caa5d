// Finds variables of a launcher beside which others of it are missing. Each of
// the launcher's processes would train alone, and write into the same files.
//
//   // The environment has WORLD_SIZE=2, and no RANK.
//   const absl::Status half = CheckNotHalfLaunched(environment);
//   half.message();   // "WORLD_SIZE=2 is set and RANK is not: ..."

#ifndef ACTORS_LAUNCHERS_HALF_LAUNCHED_H_
#define ACTORS_LAUNCHERS_HALF_LAUNCHED_H_

#include "absl/status/status.h"
#include "actors/launchers/variables.h"

namespace troupe::actors {

// Whether this is a Slurm job's script or interactive shell. They have some of
// a task's variables, and are none.
bool IsSlurmScript(const Variables& environment);

// Checks an environment in which no launcher was found. A number of one process
// is none of several, and words (RANK=gold) are of other programs.
//   kInvalidArgument: a launcher set only some of its variables; names one that
//     is set, and one that is not.
absl::Status CheckNotHalfLaunched(const Variables& environment);

}  // namespace troupe::actors

#endif  // ACTORS_LAUNCHERS_HALF_LAUNCHED_H_
