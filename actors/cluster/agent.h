// The coordinator's peer in every process but process 0. The agent exchanges
// signs of life with the coordinator, receives the outcome of the job, and ends
// the local ranks if process 0 is lost.
//
// Takes  Welcome    from the coordinator: the processes of the job
//        CrewReady  from its own process: the local ranks
//        Heartbeat  from the coordinator
//        JobEnded   from the coordinator: the outcome; -> Farewell
//        Failure    from its own process, which has failed -> the coordinator
//        RankWaits  from the local ranks, as the answer to AskWaits
//        halt       from its own process -> the coordinator
// Gives  Heartbeat, Failure, halt, TraceShare, Farewell to the coordinator;
//        AskWaits to the local ranks if the coordinator is lost (at once when
//        its connection is closed, else when it has been silent for the
//        liveness time-out; a Failure then says so to the coordinator, which
//        would otherwise blame others);
//        EndRank to the ranks and Refused to the local ControlClient, after
//        that, and when the job has ended
//
// The agent lives until its process ends it: the job may end while ranks are
// still being set up, and the agent then ends these too.

#ifndef ACTORS_CLUSTER_AGENT_H_
#define ACTORS_CLUSTER_AGENT_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/cluster/liveness.h"
#include "actors/cluster/trace_share.h"
#include "actors/setup/job_report.h"
#include "actors/spec/cluster_options.h"
#include "actors/supervision/held_verdict.h"

namespace troupe::actors {

class AgentState {
 public:
  static inline const char* name = "agent";
  using Self = AgentActor::stateful_pointer<AgentState>;
  // Called once, with the outcome of the job.
  using OnEnd = std::function<void(const absl::StatusOr<JobResult>&)>;

  void Init(Self self, const ClusterOptions& options,
            CoordinatorActor coordinator, caf::strong_actor_ptr waiting,
            TraceSink* trace, OnEnd on_end);

  void OnWelcome(const Welcome& welcome);
  void OnCrewReady(const CrewReady& crew);
  void OnHeartbeat(const Heartbeat& beat);
  void OnJobEnded(const JobEnded& ended);
  void OnFailure(const Failure& failure);
  void OnRankWaits(const RankWaits& answer);
  void OnAsk();
  void OnHalt();
  void OnBeat();
  void OnDown();

 private:
  Liveness::TimePoint Now() const { return self_->clock().now(); }
  // Returns the name of process 0 for error messages.
  std::string Coordinator() const;
  void SendTrace();
  // Called when process 0 is lost: ends the job here once the local ranks have
  // reported what they wait for.
  void Hold(const absl::Status& status);
  // Ends the local ranks and reports the outcome. Only the first call counts.
  void End(const absl::StatusOr<JobResult>& result);
  void EndCrew();

  Self self_ = nullptr;
  ClusterOptions options_;
  CoordinatorActor coordinator_;
  caf::strong_actor_ptr waiting_;
  TraceSink* trace_ = nullptr;
  ClockOffset clock_offset_;
  OnEnd on_end_;
  std::optional<Roster> roster_;
  std::int32_t generation_ = 0;
  std::optional<CrewReady> crew_;
  std::optional<Liveness> liveness_;
  Liveness::TimePoint last_beat_;
  std::optional<HeldVerdict> verdict_;
  std::optional<absl::Status> ended_;
};

// `waiting` is the address of the ControlClient in this process. The events of
// `trace` are sent to process 0 at the end; it may be null.
AgentActor::behavior_type AgentBehavior(AgentState::Self self,
                                        const ClusterOptions& options,
                                        CoordinatorActor coordinator,
                                        caf::strong_actor_ptr waiting,
                                        TraceSink* trace,
                                        AgentState::OnEnd on_end);

// Converts a result to a message, and back.
JobEnded ToMessage(std::int32_t generation,
                   const absl::StatusOr<JobResult>& result);
absl::StatusOr<JobResult> ToResult(const JobEnded& ended);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_AGENT_H_
