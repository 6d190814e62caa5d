// Connects the processes of a cluster without a job: they exchange their
// roster, check that a text is the same in all, and get a link from each to
// each. The control plane is closed when the call returns.
//
//   TROUPE_ASSIGN_OR_RETURN(MetProcesses met,
//                           MeetProcesses(options, agreement));
//   comm::FabricOptions fabric;
//   fabric.links = std::move(met.links);
//   met.roster.member(1).host;                           // process 1's host
//
// Errors: the same as StartClusterJob() (cluster_job.h); all processes return
// the same one. kFailedPrecondition if `agreement`, lines of "name = value", is
// not the same in all processes: the message has the first line that differs.
//
// Threads: blocks the calling thread, for ClusterOptions::join_timeout at most
// and the time that links need.

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
  // One for each process; null for this one.
  std::vector<std::unique_ptr<comm::Link>> links;
};

absl::StatusOr<MetProcesses> MeetProcesses(const ClusterOptions& options,
                                           const std::string& agreement);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_RENDEZVOUS_H_
