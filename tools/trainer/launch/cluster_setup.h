// From which process of a job this is (launchers.h) to what the job is told of
// the others.
//
//   TROUPE_ASSIGN_OR_RETURN(std::vector<Setting> more,
//                           RankSettings(placement, loaded));
//   // ... load the configuration again, with these ...
//   TROUPE_ASSIGN_OR_RETURN(
//       loaded.config.job.cluster,
//       ClusterOf(placement, loaded, /*insecure=*/false));
//
// Ranks are spread over the processes as evenly as can be, the first ones
// having one more. Where the configuration has fewer ranks than there are
// processes, each process gets one.

#ifndef TOOLS_TRAINER_LAUNCH_CLUSTER_SETUP_H_
#define TOOLS_TRAINER_LAUNCH_CLUSTER_SETUP_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/spec/cluster_options.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/launch/launchers.h"

namespace troupe::tools {

// What the launcher says of ranks, as settings over the configuration; none
// where that has enough of them.
//   kInvalidArgument: they contradict each other; names both.
absl::StatusOr<std::vector<Setting>> RankSettings(const Placement& placement,
                                                  const LoadedConfig& loaded);

// None where this process is the only one. Waits for process 0's address, where
// it is in the store of torchrun.
//   kInvalidArgument: fewer ranks than processes; no certificates; the
//     transport is MPI, and mpirun has not started this process.
//   kUnimplemented, kNotFound: it is, and there is no MPI here.
absl::StatusOr<std::optional<actors::ClusterOptions>> ClusterOf(
    const Placement& placement, const LoadedConfig& loaded, bool insecure);

// What all processes must have alike: a line "section.key = value" for each key
// but those that name files of this host.
std::string AgreementOf(const LoadedConfig& loaded);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_CLUSTER_SETUP_H_
