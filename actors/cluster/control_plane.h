// The edge to the network of the control plane: an actor system that other
// processes reach by mutual TLS, and the way from a process to the coordinator.
//
//   caf::actor_system_config config;
//   TROUPE_RETURN_IF_ERROR(OpenNetwork(options, config));
//   caf::actor_system system(config);
//   absl::StatusOr<int> port = Publish(system, coordinator, options);
//   // ... in another process:
//   TROUPE_ASSIGN_OR_RETURN(CoordinatorActor coordinator,
//                           Connect(system, options, deadline));
//
// A port of CAF's that anybody can speak to can be crashed by anybody
// (docs/caf.md), so without TLS only where ClusterOptions::insecure says
// so, and never at a public address.
//
// Beside caf.h, this is where the rest of Troupe meets CAF's network.

#ifndef ACTORS_CLUSTER_CONTROL_PLANE_H_
#define ACTORS_CLUSTER_CONTROL_PLANE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/caf/caf.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/spec/cluster_options.h"

namespace troupe::actors {

// Gives the actor system of `config` a network.
//   kInvalidArgument, kNotFound, ..: what is wrong with the options or the
//     certificates; names the file and says what to do.
absl::Status OpenNetwork(const ClusterOptions& options,
                         caf::actor_system_config& config);

// Listens at options.master_host and master_port; the port that it got, where
// that is 0.
//   kUnavailable: the address is not this machine's, or the port is taken.
absl::StatusOr<int> Publish(caf::actor_system& system,
                            const CoordinatorActor& coordinator,
                            const ClusterOptions& options);

// Tries again, ever more slowly, as long as nobody listens there.
//   kDeadlineExceeded: nobody did until `deadline`.
//   kUnauthenticated: somebody does, but the handshake of TLS fails.
absl::StatusOr<CoordinatorActor> Connect(caf::actor_system& system,
                                         const ClusterOptions& options,
                                         absl::Time deadline);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_CONTROL_PLANE_H_
