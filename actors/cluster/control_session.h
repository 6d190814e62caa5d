// The session of one process with the control plane of a job, from the first
// contact to the farewell: the actor system that reaches the other processes,
// the coordinator (in process 0) or the agent (in the others), and the client
// for requests of a process that has no actors yet.
//
//   TROUPE_ASSIGN_OR_RETURN(auto threads, StartActorThreads(/*count=*/2));
//   ControlSession session(options, std::move(threads), /*trace=*/nullptr);
//   TROUPE_RETURN_IF_ERROR(session.Open());
//   if (session.decides()) session.Offer(std::move(offer));
//   TROUPE_ASSIGN_OR_RETURN(const Welcome welcome, session.Join(agreement));
//   TROUPE_RETURN_IF_ERROR(session.client().Set("data/1", "10.0.0.8:40112"));
//   if (session.decides()) session.End(JobResult());
//   session.AwaitFarewells();
//
// A process speaks to the others through its agent, if it has one: what it
// reports stays in order with the agent's own messages. Process 0 has none and
// speaks to its coordinator.
//
// Errors: those of OpenNetwork(), Publish(), Connect() and ControlClient.
// Threads: one at a time; what Reporter() returns may be called in any.

#ifndef ACTORS_CLUSTER_CONTROL_SESSION_H_
#define ACTORS_CLUSTER_CONTROL_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/caf/caf.h"
#include "actors/caf/thread_supply.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/cluster/control_client.h"
#include "actors/cluster/coordinator.h"
#include "actors/setup/job_outcome.h"
#include "actors/setup/job_report.h"
#include "actors/spec/cluster_options.h"

namespace troupe::actors {

class ControlSession {
 public:
  // `threads` run the actors. `trace` receives the trace events of other
  // processes in process 0, and has those of this one elsewhere; it outlives
  // the session and may be null.
  ControlSession(const ClusterOptions& options,
                 std::unique_ptr<ThreadSupply> threads, TraceSink* trace);
  ~ControlSession() { Leave(); }
  ControlSession(const ControlSession&) = delete;
  ControlSession& operator=(const ControlSession&) = delete;

  // Returns whether this is process 0, which makes the decisions for all.
  bool decides() const { return options_.process == 0; }
  const ClusterOptions& options() const { return options_; }

  // Starts the actor system. Spawns the coordinator in process 0; connects to
  // it in the others, and spawns their agent.
  absl::Status Open();
  // Sends the decisions of process 0 to its coordinator, with a new secret for
  // data connections.
  void Offer(Welcome offer);
  // Joins the job, and waits until all processes have. `agreement`: see
  // ClusterOptions.
  absl::StatusOr<Welcome> Join(const std::string& agreement);

  // These are there after Open().
  caf::actor_system& system() { return *system_; }
  ControlClient& client() { return *client_; }
  const CoordinatorActor& coordinator() const { return coordinator_; }
  const AgentActor& agent() const { return agent_; }  // null in process 0
  // Returns the outcome of the job, which the agent sets. In process 0 its
  // owner does.
  const std::shared_ptr<JobOutcome>& outcome() const { return outcome_; }

  // Asks the job to stop.
  void RequestHalt();
  // Returns a function that reports that this process has failed, or has lost
  // the process `lost`, which is -1 if it has lost none.
  std::function<void(int lost, const absl::Status& why)> Reporter() const;
  // Ends the job for all processes. Only in process 0.
  void End(const absl::StatusOr<JobResult>& result);
  // Waits a short time in process 0 until the others have confirmed the end:
  // they must have received it before this process may end.
  void AwaitFarewells();
  // Ends the job, which has not begun, because of this process's error `own`;
  // the others are told `reported`. Returns the reason for the failure that all
  // processes return: this one's own may not be the first. The answer also
  // shows that process 0 has received it.
  absl::Status FailToStart(const absl::Status& own,
                           const absl::Status& reported);
  // Returns `status` with this process's name, for an error that only it sees.
  absl::Status InThisProcess(const absl::Status& status) const;
  // Ends the client and the actors of the session. A second call has no effect.
  void Leave();

 private:
  struct Config : caf::actor_system_config {
    explicit Config(ThreadSupply& threads);
  };

  absl::Status ReachCoordinator();
  absl::Status VerdictOr(const absl::Status& own);

  const ClusterOptions options_;
  TraceSink* const trace_;
  const std::shared_ptr<JobOutcome> outcome_ = std::make_shared<JobOutcome>();
  const std::unique_ptr<ThreadSupply> threads_;
  Config config_;
  std::optional<caf::actor_system> system_;
  const CoordinatorState::Gone gone_ = std::make_shared<absl::Notification>();
  CoordinatorActor coordinator_;
  AgentActor agent_;
  std::optional<ControlClient> client_;
  std::int32_t generation_ = 0;  // none before the welcome
};

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_CONTROL_SESSION_H_
