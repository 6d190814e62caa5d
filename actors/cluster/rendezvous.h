// Brings the processes of a cluster together without a job: they learn of each
// other, agree on a text, and have a link each to each. The control plane is
// there for that alone, and gone when this returns.
//
//   TROUPE_ASSIGN_OR_RETURN(MetProcesses met,
//                           MeetProcesses(options, agreement));
//   comm::FabricOptions fabric;
//   fabric.links = std::move(met.links);
//   met.roster.member(1).host;                           // of process 1
//
// Errors: as Job::Start() in several processes (cluster_job.h); all processes
// report the same one. kFailedPrecondition where `agreement`, lines "name =
// value", differs: the first line that does is shown.
//
// Threads: blocks the calling one, for ClusterOptions::join_timeout at most and
// the time that links need.

#ifndef ACTORS_CLUSTER_RENDEZVOUS_H_
#define ACTORS_CLUSTER_RENDEZVOUS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/setup/roster.h"
#include "actors/spec/cluster_options.h"
#include "comm/link.h"

namespace troupe::actors {

struct MetProcesses {
  Roster roster;
  std::int32_t generation = 0;
  // By process; null for this one.
  std::vector<std::unique_ptr<comm::Link>> links;
};

absl::StatusOr<MetProcesses> MeetProcesses(const ClusterOptions& options,
                                           const std::string& agreement);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_RENDEZVOUS_H_
