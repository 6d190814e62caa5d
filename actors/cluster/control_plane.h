// The network of the control plane: opens an actor system to other processes by
// mutual TLS, and connects a process to the coordinator.
//
//   caf::actor_system_config config;
//   TROUPE_RETURN_IF_ERROR(OpenNetwork(options, config));
//   caf::actor_system system(config);
//   absl::StatusOr<int> port = Publish(system, coordinator, options);
//   // ... in another process:
//   TROUPE_ASSIGN_OR_RETURN(CoordinatorActor coordinator,
//                           Connect(system, options, deadline));
//
// Anyone who can connect to a CAF port can crash the process (docs/caf.md).
// So TLS is required unless ClusterOptions::insecure is set, and always at a
// public address.

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

// Adds CAF's network modules to the actor system of `config`.
//   kInvalidArgument, kNotFound, ..: the options or the certificates are wrong.
//     The message names the file and says what to do.
absl::Status OpenNetwork(const ClusterOptions& options,
                         caf::actor_system_config& config);

// Listens at options.master_host and master_port. Returns the port, which the
// system has chosen if master_port is 0.
//   kUnavailable: the address is not this machine's, or the port is taken.
absl::StatusOr<int> Publish(caf::actor_system& system,
                            const CoordinatorActor& coordinator,
                            const ClusterOptions& options);

// Connects to the coordinator. While no process listens there, it tries again,
// at growing intervals.
//   kDeadlineExceeded: no connection was made before `deadline`.
//   kUnauthenticated: a process listens there, but the handshake fails.
//   kCancelled: options.give_up was notified.
absl::StatusOr<CoordinatorActor> Connect(caf::actor_system& system,
                                         const ClusterOptions& options,
                                         absl::Time deadline);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_CONTROL_PLANE_H_
