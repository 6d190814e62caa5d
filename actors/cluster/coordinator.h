// The coordinator of a job's processes, an actor in process 0. Processes join
// the job here, exchange addresses, report their actors and give signs of life.
//
// Takes  Join            -> Welcome when all have joined and agree
//        Welcome         from its own process: its decisions for all
//        SetKey, GetKey  -> KeyValue, at once or when the key is set
//        GetSupervisor   -> SupervisorIs, when there is a supervisor
//        Muster          from its own process: the crew to complete
//        CrewReady       the actors of another process
//        Heartbeat       -> Heartbeat
//        Failure         a process has failed; it may have no ranks yet
//        halt            a stop was requested, in any process
//        JobEnded        from its own process -> JobEnded to all agents
//        TraceShare      from an agent
//        Farewell        from an agent
// Gives  begin to the supervisor when every process has reported its actors;
//        Failure to it if a process is lost or silent
// Fails  never by itself. After a failure every request is answered with it
//        (Refused); if there is a supervisor, it ends the job.
//
// A process is lost when its agent is down (its connection was closed, which is
// noticed at once), or when it gives no sign of life for the liveness time-out.
// A silent process is still sent the end, which it reads if it ever recovers.
//
// A process that joins after the first failure, or after the end, is sent that
// result, so that all processes end for the same reason. Process 0 does not
// wait for a process that has not joined by the deadline. Once all have joined,
// a further process with a number that is taken is refused, and the job goes
// on.

#ifndef ACTORS_CLUSTER_COORDINATOR_H_
#define ACTORS_CLUSTER_COORDINATOR_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/synchronization/notification.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/cluster/key_store.h"
#include "actors/cluster/liveness.h"
#include "actors/cluster/membership.h"
#include "actors/cluster/own_pause.h"
#include "actors/spec/cluster_options.h"

namespace troupe::actors {

class CoordinatorState {
 public:
  static inline const char* name = "coordinator";
  using Self = CoordinatorActor::stateful_pointer<CoordinatorState>;
  using Gone = std::shared_ptr<absl::Notification>;

  // `gone` is notified when the job has ended and every process has confirmed
  // that, or is lost. `trace` receives the trace events of the other processes;
  // it may be null.
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

  TimePoint Now() const { return self_->clock().now(); }
  // Returns the time until the next check of signs of life and of deadlines.
  Liveness::Duration UntilNextBeat(TimePoint now) const;
  template <typename Message>
  void Answer(const caf::strong_actor_ptr& to, Message message) {
    if (to != nullptr) {
      caf::anon_send(caf::actor_cast<caf::actor>(to), std::move(message));
    }
  }
  // Answers the sender of this message with the failure, if there is one.
  bool RefuseSender();
  // Registers a process's agent: it must give signs of life from now on, and is
  // sent the end.
  void Admit(const Join& join);
  void WelcomeAllIfComplete();
  // Answers the pending GetSupervisor, if there is a supervisor.
  void NameSupervisor();
  void BeginIfComplete();
  // Reports a failure of the job. `lost`: the process that is lost, or -1.
  void Fail(const absl::Status& status, int lost = -1);
  void RefuseAll();
  void CheckDeadlines(TimePoint now);
  // Gives the others a new time-out if this process itself was stopped.
  void NoteOwnPause(TimePoint now);
  absl::Status BlameOwnPause(const absl::Status& lost);
  // Whether the current message, which has this generation, is from the agent
  // of `process`.
  bool IsPeer(std::int32_t generation, int process) const {
    return members_->IsPeer(generation, process, self_->current_sender());
  }
  void Leave(int process);

  Self self_ = nullptr;
  ClusterOptions options_;
  Gone gone_;
  TraceSink* trace_ = nullptr;
  std::optional<Membership> members_;
  std::optional<Liveness> liveness_;
  std::optional<OwnPause> own_pause_;
  // Time since which the processes have been expected to join; once all have,
  // to set up their ranks.
  TimePoint expecting_since_;

  KeyStore keys_;
  std::vector<caf::strong_actor_ptr> awaiting_supervisor_;
  std::optional<Muster> muster_;
  bool begun_ = false;
  bool halted_ = false;
  std::optional<JobEnded> ended_;
  absl::Status failure_;
};

CoordinatorActor::behavior_type CoordinatorBehavior(
    CoordinatorState::Self self, const ClusterOptions& options,
    CoordinatorState::Gone gone, TraceSink* trace);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_COORDINATOR_H_
