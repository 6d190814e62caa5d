// Makes the job's cluster options from the place of this process in the job
// (launchers.h).
//
//   TROUPE_ASSIGN_OR_RETURN(std::vector<Setting> more,
//                           RankSettings(placement, loaded));
//   // ... load the configuration again, with these ...
//   TROUPE_ASSIGN_OR_RETURN(
//       loaded.config.job.cluster,
//       ClusterOf(placement, loaded, /*insecure=*/false));
//
// Ranks are spread over the processes as evenly as possible; the first ones may
// have one more. If the configuration has fewer ranks than there are processes,
// each process gets one.

#ifndef TOOLS_TRAINER_LAUNCH_CLUSTER_SETUP_H_
#define TOOLS_TRAINER_LAUNCH_CLUSTER_SETUP_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/launchers/launchers.h"
#include "actors/spec/cluster_options.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// Returns the number of ranks that the launcher sets, as settings over the
// configuration; none if that has enough ranks.
//   kInvalidArgument: launcher and configuration contradict each other; names
//     both.
absl::StatusOr<std::vector<Setting>> RankSettings(
    const actors::Placement& placement, const LoadedConfig& loaded);

// Returns the cluster options; none if this process is the only one. Waits for
// process 0's address if it is in the store of torchrun.
//   kInvalidArgument: fewer ranks than processes; no certificates; the
//     transport is MPI, and mpirun has not started this process.
//   kUnimplemented, kNotFound: the transport is MPI, and MPI is not available.
absl::StatusOr<std::optional<actors::ClusterOptions>> ClusterOf(
    const actors::Placement& placement, const LoadedConfig& loaded,
    bool insecure);

// Returns the configuration that must be the same in all processes: a line
// "section.key = value" for each key, except for keys that name files of this
// host.
std::string AgreementOf(const LoadedConfig& loaded);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_CLUSTER_SETUP_H_
