// Makes a job's ClusterOptions from the environment that a launcher set: a
// program with a main() of its own runs under torchrun, Slurm, Open MPI,
// Kubernetes or `trainer launch --program=PATH`, or by itself.
//
//   JobSpec spec = MyJob();
//   TROUPE_ASSIGN_OR_RETURN(spec.cluster,
//                           ClusterFromEnvironment(spec.plan.mesh.size()));
//   TROUPE_ASSIGN_OR_RETURN(JobResult result, RunJob(spec));
//
// A program whose ranks follow from the number of processes asks for that
// first:
//
//   TROUPE_ASSIGN_OR_RETURN(Placement placement, PlacementFromEnvironment());
//   spec.plan.mesh = pipeline::Mesh(/*dp=*/placement.processes);
//   TROUPE_ASSIGN_OR_RETURN(spec.cluster,
//                           ClusterOf(placement, spec.plan.mesh.size()));
//   if (placement.process == 0) Show(placement.ToString());
//
// Ranks are spread over the processes as evenly as possible; the first ones may
// have one more. Certificates are those of `trainer launch`, or of the folder
// TROUPE_CERTS. All other fields of ClusterOptions keep their defaults.
//
// Blocks only under torchrun, in processes other than 0: until process 0 has
// called RunJob() and published its address, for a minute at most
// (torchrun_store.h). Threads: any.

#ifndef ACTORS_LAUNCHERS_CLUSTER_FROM_ENVIRONMENT_H_
#define ACTORS_LAUNCHERS_CLUSTER_FROM_ENVIRONMENT_H_

#include <unistd.h>

#include <optional>

#include "absl/status/statusor.h"
#include "actors/launchers/launchers.h"
#include "actors/spec/cluster_options.h"

namespace troupe::actors {

// Whether the control connections of a job use TLS, with certificates, or are
// open to whoever reaches the ports (ClusterOptions::insecure).
enum class ControlNetwork { kTls, kInsecure };

// Returns the cluster options of a job of `ranks` ranks; none if this process
// is the only one.
//   kInvalidArgument: variables contradict each other, or are not enough; fewer
//     ranks than processes; no certificates. Names the variables to set.
//   Those of WaitAddress(): torchrun's store does not answer.
absl::StatusOr<std::optional<ClusterOptions>> ClusterFromEnvironment(
    int ranks, ControlNetwork network = ControlNetwork::kTls,
    const char* const* environment = environ);

// Returns the place of this process in its job.
//   kInvalidArgument: as above.
absl::StatusOr<Placement> PlacementFromEnvironment(
    const char* const* environment = environ);

// Returns the cluster options of this place; errors as above.
absl::StatusOr<std::optional<ClusterOptions>> ClusterOf(
    const Placement& placement, int ranks,
    ControlNetwork network = ControlNetwork::kTls);

}  // namespace troupe::actors

#endif  // ACTORS_LAUNCHERS_CLUSTER_FROM_ENVIRONMENT_H_
