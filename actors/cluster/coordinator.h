// The front desk of a job, in process 0: processes join here, leave addresses
// for each other, report their actors, and give signs of life.
//
// Takes  Join            -> Welcome when all have joined and agree
//        Welcome         from its own process: the plan, for all
//        SetKey, GetKey  -> KeyValue, now or when the key is set
//        GetSupervisor   -> SupervisorIs, when there is one
//        Muster          from its own process: the crew to be completed
//        CrewReady       the actors of another process
//        Heartbeat       -> Heartbeat
//        Failure         a process cannot go on; it may have no rank yet
//        halt            a stop was requested, in any process
//        JobEnded        from its own process -> JobEnded to all agents
//        TraceShare      from an agent
//        Farewell        from an agent
// Gives  begin to the supervisor when every process has reported its actors;
//        Failure to it where a process is lost or silent
// Fails  never by itself. After a failure every request is answered with it
//        (Refused); where there is a supervisor, that one ends the job.
//
// A process is lost when its agent is down (its connection closed: known at
// once), or when it gives no sign of life for the liveness time-out. One that
// was only silent hears the end too, if it ever listens again.
//
// After the first failure, and after the end, those who join late are told, so
// that all processes end for one reason; only for those that have not come by
// the deadline nobody waits. A job that is under way goes on when
// somebody comes with a number that is taken.

#ifndef ACTORS_CLUSTER_COORDINATOR_H_
#define ACTORS_CLUSTER_COORDINATOR_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/cluster/join_round.h"
#include "actors/cluster/liveness.h"
#include "actors/spec/cluster_options.h"

namespace troupe::actors {

class CoordinatorState {
 public:
  static inline const char* name = "coordinator";
  using Self = CoordinatorActor::stateful_pointer<CoordinatorState>;
  using Gone = std::shared_ptr<absl::Notification>;

  // `gone` is notified when the job has ended and every process has said so, or
  // is lost. `trace` is given what the other processes have traced; may be
  // null.
  void Init(Self self, const ClusterOptions& options, Gone gone,
            TraceSink* trace);

  void OnJoin(const Join& join);
  void OnOffer(const Welcome& offer);
  void OnSetKey(const SetKey& set);
  void OnGetKey(const GetKey& get);
  void OnGetSupervisor(const GetSupervisor& get);
  void OnMuster(const Muster& muster);
  void OnCrewReady(const CrewReady& crew);
  void OnHeartbeat(const Heartbeat& beat);
  void OnFailure(const Failure& failure);
  void OnHalt();
  void OnJobEnded(const JobEnded& ended);
  void OnTraceShare(const TraceShare& share);
  void OnFarewell(const Farewell& farewell);
  void OnDown(const caf::down_msg& down);
  void OnBeat();

 private:
  using TimePoint = Liveness::TimePoint;
  struct Process {
    caf::strong_actor_ptr agent;
    std::uint64_t nonce = 0;
    bool has_crew = false;
    bool gone = false;  // has said farewell, or is lost
  };

  struct Pause {
    TimePoint end;
    Liveness::Duration duration;
  };

  TimePoint Now() const { return self_->clock().now(); }
  // How long until signs of life, or a deadline, are to be looked at.
  Liveness::Duration UntilNextBeat(TimePoint now) const;
  template <typename Message>
  void Answer(const caf::strong_actor_ptr& to, Message message) {
    if (to != nullptr) {
      caf::anon_send(caf::actor_cast<caf::actor>(to), std::move(message));
    }
  }
  // Answers the sender of this message with the failure, if there is one.
  bool RefuseSender();
  // From now on it must give signs of life, and hears the end.
  void Admit(const Join& join);
  void WelcomeAllIfComplete();
  // Tells those who wait for it.
  void NameSupervisor();
  void BeginIfComplete();
  void SendKeys();
  std::string Describe(int process) const;
  bool IsAgent(const caf::strong_actor_ptr& actor) const;
  // `lost`: the process that is, or -1.
  void Fail(const absl::Status& status, int lost = -1);
  void RefuseAll();
  void CheckDeadlines(TimePoint now);
  void NoteOwnPause(TimePoint now);
  absl::Status BlameOwnPause(const absl::Status& lost);
  // Whether another process has this number.
  bool IsOther(int process) const;
  // Whether the message at hand, of this generation, is from its agent.
  bool IsPeer(std::int32_t generation, int process) const;
  void Leave(int process);

  Self self_ = nullptr;
  ClusterOptions options_;
  Gone gone_;
  TraceSink* trace_ = nullptr;
  std::optional<JoinRound> round_;
  std::optional<Roster> roster_;  // when all have joined
  std::optional<Welcome> offer_;
  std::vector<Process> processes_;
  std::vector<caf::strong_actor_ptr> joining_;  // by process: who waits
  std::optional<Liveness> liveness_;
  TimePoint last_beat_, start_;
  std::optional<Pause> own_pause_;  // the last long one

  std::map<std::string, std::string> store_;
  std::map<std::string, std::vector<caf::strong_actor_ptr>> awaited_keys_;
  std::vector<caf::strong_actor_ptr> awaiting_supervisor_;
  std::optional<Muster> muster_;
  TimePoint welcomed_;
  bool begun_ = false, halted_ = false;
  std::optional<JobEnded> ended_;
  absl::Status failure_;
};

CoordinatorActor::behavior_type CoordinatorBehavior(
    CoordinatorState::Self self, const ClusterOptions& options,
    CoordinatorState::Gone gone, TraceSink* trace);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_COORDINATOR_H_
