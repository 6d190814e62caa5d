// What a process other than process 0 has of the job's front desk: it gives and
// watches signs of life, hears how the job ended, and ends the ranks here where
// process 0 is lost.
//
// Takes  Welcome    from the coordinator: who the others are
//        CrewReady  from its own process: the ranks that live here
//        Heartbeat  from the coordinator
//        JobEnded   from the coordinator: the outcome; -> Farewell
//        Failure    from its own process: it cannot go on -> the coordinator
//        RankWaits  from the ranks that live here, when they were asked
//        halt       from its own process -> the coordinator
// Gives  Heartbeat, Failure, halt, TraceShare, Farewell to the coordinator;
//        AskWaits to the ranks here where the coordinator is lost (at once when
//        its connection closes, else when it has been silent for the liveness
//        time-out: the coordinator is told so, lest it blames others); EndRank
//        to the ranks, Refused to whoever waits in this process, then, and when
//        the job has ended
//
// It stays until its process ends it: the end may come while ranks are still
// being set up, and they end too.

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
  // Told once how the job ended.
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
  std::string Coordinator() const;
  void SendTrace();
  // Process 0 is lost: ends when the ranks here have said what they wait for.
  void Hold(const absl::Status& status);
  // The first call counts.
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

// `waiting`: who waits for answers of the coordinator in this process. `trace`:
// what process 0 is given at the end; may be null.
AgentActor::behavior_type AgentBehavior(AgentState::Self self,
                                        const ClusterOptions& options,
                                        CoordinatorActor coordinator,
                                        caf::strong_actor_ptr waiting,
                                        TraceSink* trace,
                                        AgentState::OnEnd on_end);

// A result as a message, and back.
JobEnded ToMessage(std::int32_t generation,
                   const absl::StatusOr<JobResult>& result);
absl::StatusOr<JobResult> ToResult(const JobEnded& ended);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_AGENT_H_
