#include "actors/cluster/rendezvous.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/cluster/control_session.h"
#include "actors/cluster/peer_links.h"
#include "base/check.h"
#include "comm/connect/transports.h"

namespace troupe::actors {
namespace {

constexpr std::int32_t kGeneration = 1;
// Threads of the actor system: one for the coordinator or agent, one for the
// clock.
constexpr int kThreads = 2;

absl::Status CheckOptions(const ClusterOptions& options) {
  if (options.process < 0 || options.process >= options.processes ||
      options.processes > kProcessesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the cluster has process ", options.process, " of ", options.processes,
        "; number them from 0, at most ", kProcessesMax));
  }
  // A library ends with the links that use it, which a job owns.
  const comm::TransportRule& wanted = comm::RuleOf(options.transport);
  if (wanted.library.empty()) return absl::OkStatus();
  std::vector<absl::string_view> able;
  for (const comm::TransportRule& rule : comm::Transports()) {
    if (rule.library.empty() && !rule.reach.empty()) able.push_back(rule.name);
  }
  return absl::UnimplementedError(
      absl::StrCat("transport ", wanted.name, " is for jobs; take ",
                   absl::StrJoin(able, " or "), " where there is none"));
}

// Returns the key that a process sets when it has all its links.
std::string ConnectedKey(int process) {
  return absl::StrCat("connected/", process);
}

// Waits until every process has all its links and the control plane may end.
absl::Status AwaitOthers(ControlSession& session) {
  const ClusterOptions& options = session.options();
  if (!session.decides()) {
    TROUPE_RETURN_IF_ERROR(
        session.client().Set(ConnectedKey(options.process), "1"));
    if (!session.outcome()->WaitFor(options.join_timeout +
                                    options.liveness_timeout)) {
      return absl::DeadlineExceededError(
          absl::StrCat("process 0 did not say within ",
                       absl::FormatDuration(options.join_timeout),
                       " that all processes are connected; see what it says"));
    }
    return session.outcome()->Wait().status();
  }
  for (int p = 1; p < options.processes; ++p) {
    TROUPE_RETURN_IF_ERROR(
        session.client().Get(ConnectedKey(p), options.join_timeout).status());
  }
  session.End(JobResult());
  session.AwaitFarewells();
  return absl::OkStatus();
}

// Meets the others in `session`, whose "job" ends when all links are connected.
absl::StatusOr<MetProcesses> Meet(const std::string& agreement,
                                  ControlSession& session) {
  TROUPE_RETURN_IF_ERROR(session.Open());
  if (session.decides()) {
    Welcome offer;
    offer.generation = kGeneration;
    session.Offer(std::move(offer));
  }
  TROUPE_ASSIGN_OR_RETURN(const Welcome welcome, session.Join(agreement));
  MetProcesses met{Roster(welcome.members), welcome.generation, {}};
  TROUPE_ASSIGN_OR_RETURN(
      comm::PeerLinks peers,
      ConnectPeers(session.options(), welcome, session.client()));
  met.links = std::move(peers.links);
  TROUPE_RETURN_IF_ERROR(AwaitOthers(session));
  return met;
}

}  // namespace

absl::StatusOr<MetProcesses> MeetProcesses(const ClusterOptions& options,
                                           const std::string& agreement) {
  TROUPE_RETURN_IF_ERROR(CheckOptions(options));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ThreadSupply> threads,
                          StartActorThreads(kThreads));
  ControlSession session(options, std::move(threads), /*trace=*/nullptr);
  absl::StatusOr<MetProcesses> met = Meet(agreement, session);
  if (met.ok()) return met;
  const absl::Status& own = met.status();
  return session.FailToStart(
      own, session.decides() ? own : session.InThisProcess(own));
}

}  // namespace troupe::actors
