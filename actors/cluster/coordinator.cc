#include "actors/cluster/coordinator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "actors/caf/actor_timeout.h"
#include "actors/cluster/trace_share.h"
#include "actors/protocol/strand_guard.h"
#include "actors/supervision/crew.h"
#include "base/field_error.h"

namespace troupe::actors {
namespace {

Refused RefusalOf(const absl::Status& status) {
  return Refused{status.raw_code(), std::string(status.message())};
}

}  // namespace

void CoordinatorState::Init(Self self, const ClusterOptions& options, Gone gone,
                            TraceSink* trace) {
  self_ = self;
  options_ = options;
  gone_ = std::move(gone);
  trace_ = trace;
  members_.emplace(options.processes);
  liveness_.emplace(ActorTimeout(options.liveness_timeout));
  expecting_since_ = Now();
  own_pause_.emplace(expecting_since_);
  self_->delayed_send(self_, UntilNextBeat(expecting_since_), beat_atom::value);
}

Liveness::Duration CoordinatorState::UntilNextBeat(TimePoint now) const {
  const Liveness::Duration left =
      ActorTimeout(options_.join_timeout) - (now - expecting_since_);
  if (begun_ || !failure_.ok() || left <= Liveness::Duration::zero()) {
    return liveness_->UntilNextCheck(now);
  }
  return std::min(left, liveness_->UntilNextCheck(now));
}

bool CoordinatorState::RefuseSender() {
  if (failure_.ok()) return false;
  Answer(self_->current_sender(), RefusalOf(failure_));
  return true;
}

void CoordinatorState::OnJoin(const Join& join) {
  if (RefuseSender()) {
    Admit(join);
    return;
  }
  const absl::Status status = members_->Add(join, self_->current_sender());
  if (!status.ok()) {
    Answer(self_->current_sender(), RefusalOf(status));
    // A stranger does not end a job that has begun.
    if (members_->roster()) return;
    Admit(join);
    Fail(status);
    return;
  }
  Admit(join);
  WelcomeAllIfComplete();
}

void CoordinatorState::Admit(const Join& join) {
  if (!members_->Admit(join)) return;
  self_->monitor(caf::actor_cast<caf::actor>(join.agent));
  liveness_->Watch(join.member.process, Now());
  if (ended_) Answer(join.agent, *ended_);
}

void CoordinatorState::OnOffer(const Welcome& offer) {
  members_->SetOffer(offer);
  WelcomeAllIfComplete();
}

void CoordinatorState::WelcomeAllIfComplete() {
  if (!failure_.ok()) return;
  std::vector<Membership::Addressed> welcomes = members_->TakeWelcomes();
  if (welcomes.empty()) return;
  for (auto& [to, welcome] : welcomes) Answer(to, std::move(welcome));
  expecting_since_ = Now();
}

void CoordinatorState::OnSetKey(const SetKey& set) {
  const auto waiting = keys_.Set(set.key, set.value);
  if (!waiting.ok()) {
    Fail(waiting.status());
    return;
  }
  for (const caf::strong_actor_ptr& each : *waiting) {
    Answer(each, KeyValue{set.key, set.value});
  }
}

void CoordinatorState::OnGetKey(const GetKey& get) {
  if (RefuseSender()) return;
  if (const std::string* const value = keys_.Find(get.key)) {
    Answer(self_->current_sender(), KeyValue{get.key, *value});
  } else {
    keys_.Await(get.key, self_->current_sender());
  }
}

void CoordinatorState::OnGetSupervisor(const GetSupervisor& get) {
  if (RefuseSender()) return;
  if (!members_->IsOfJob(get.generation)) return;
  awaiting_supervisor_.push_back(self_->current_sender());
  NameSupervisor();
}

void CoordinatorState::NameSupervisor() {
  if (!muster_) return;
  const auto supervisor =
      caf::actor_cast<caf::strong_actor_ptr>(muster_->supervisor);
  for (const caf::strong_actor_ptr& each : awaiting_supervisor_) {
    Answer(each, SupervisorIs{supervisor});
  }
  awaiting_supervisor_.clear();
}

void CoordinatorState::OnMuster(const Muster& muster) {
  muster_ = muster;
  members_->SetCrew(0);
  if (!failure_.ok()) {
    BeginIfComplete();
    return;
  }
  NameSupervisor();
  if (halted_) self_->send(muster_->supervisor, halt_atom::value);
  BeginIfComplete();
}

void CoordinatorState::OnCrewReady(const CrewReady& crew) {
  // A process spawns its crew only after it has received the supervisor.
  if (!muster_ || !members_->IsOfJob(crew.generation) || begun_) return;
  const int process = crew.process;
  if (!members_->IsOther(process) || members_->HasCrew(process)) return;
  const Roster& roster = *members_->roster();
  const int first = roster.FirstRankOf(process);
  const int count = roster.FirstRankOf(process + 1) - first;
  const auto lost = std::count(crew.ranks.begin(), crew.ranks.end(), nullptr) +
                    (crew.checkpointer == nullptr);
  if (static_cast<int>(crew.ranks.size()) != count || lost != 0) {
    Fail(absl::InternalError(absl::StrCat(
        members_->Describe(process), " reported ", crew.ranks.size(),
        " ranks; ", lost, " actors cannot be reached")));
    return;
  }
  for (int i = 0; i < count; ++i) {
    muster_->crew->ranks[first + i] = caf::actor_cast<RankActor>(crew.ranks[i]);
  }
  muster_->crew->checkpointers[process] =
      caf::actor_cast<CheckpointerActor>(crew.checkpointer);
  muster_->crew->share_folder = muster_->crew->share_folder && crew.has_folder;
  members_->SetCrew(process);
  BeginIfComplete();
}

void CoordinatorState::BeginIfComplete() {
  if (begun_ || !muster_) return;
  // The supervisor ends a job that has failed, with the actors reported so far.
  if (failure_.ok() && !members_->AllHaveCrews()) return;
  begun_ = true;
  self_->send(muster_->supervisor, begin_atom::value);
  if (!failure_.ok()) Fail(failure_);
}

void CoordinatorState::OnHeartbeat(const Heartbeat& beat) {
  if (!IsPeer(beat.generation, beat.process)) return;
  liveness_->Heard(beat.process, Now());
  Answer(members_->agent(beat.process),
         Heartbeat{beat.generation, 0, beat.agent_nanos,
                   absl::GetCurrentTimeNanos()});
}

void CoordinatorState::NoteOwnPause(TimePoint now) {
  if (own_pause_->IsLate(now, *liveness_)) liveness_->Restart(now);
}

// Returns `lost`, the error about a process that has left. But if process 0
// itself was stopped for so long that others may have taken it for lost, and
// less than a time-out ago, returns an error that blames this pause.
absl::Status CoordinatorState::BlameOwnPause(const absl::Status& lost) {
  const TimePoint now = Now();
  NoteOwnPause(now);
  const auto pause = own_pause_->Recent(now, *liveness_);
  if (!pause) return lost;
  return base::WithMessage(
      lost,
      absl::StrCat(members_->Describe(0), " stood still for ",
                   absl::FormatDuration(absl::Trunc(absl::FromChrono(*pause),
                                                    absl::Milliseconds(100))),
                   ", and others have left: ", lost.message()));
}

void CoordinatorState::OnBeat() {
  const TimePoint now = Now();
  NoteOwnPause(now);
  own_pause_->Beat(now);
  if (const auto silent = liveness_->FindSilent(now)) {
    const int process = silent->peer;
    Fail(absl::UnavailableError(absl::StrCat(
             members_->Describe(process), " has given no sign of life for ",
             absl::FormatDuration(absl::Trunc(
                 absl::FromChrono(silent->duration), absl::Milliseconds(100))),
             ": it is stopped, or the network between it and process 0 is; "
             "continue it (kill -CONT), or check the network")),
         /*lost=*/process);
    Leave(process);
  }
  CheckDeadlines(now);
  self_->delayed_send(self_, UntilNextBeat(now), beat_atom::value);
}

void CoordinatorState::CheckDeadlines(TimePoint now) {
  if (begun_ || !failure_.ok()) return;
  const auto timeout = ActorTimeout(options_.join_timeout);
  if (now - expecting_since_ < timeout) return;
  std::string late;
  if (!members_->has_all()) {
    late = members_->DescribeMissing();
    // Process 0 does not wait for the Farewell of processes that are too late.
    members_->GiveUpMissing();
  } else if (members_->roster()) {
    late = members_->DescribeWithoutCrew();
  }
  if (late.empty()) return;
  Fail(absl::DeadlineExceededError(absl::StrCat(
      late, " within ", absl::FormatDuration(options_.join_timeout),
      "; see the output there")));
}

void CoordinatorState::OnFailure(const Failure& failure) {
  // A sender without a generation has not received its welcome yet. Once all
  // have joined, it is one of them, or a stranger that was refused.
  const bool is_ours =
      failure.generation == 0
          ? !members_->roster() || members_->IsAgent(self_->current_sender())
          : members_->IsOfJob(failure.generation);
  if (!is_ours) return;
  const absl::Status status(static_cast<absl::StatusCode>(failure.code),
                            failure.message);
  // A failure without a sender is from this process; others are sent by agents.
  Fail(self_->current_sender() == nullptr ? BlameOwnPause(status) : status,
       failure.process);
}

void CoordinatorState::Fail(const absl::Status& status, int lost) {
  if (ended_) return;
  if (failure_.ok()) failure_ = status;
  if (begun_) {
    Failure failure =
        MakeFailure(members_->generation(), /*rank=*/-1, "", status);
    failure.process = lost;
    self_->send(muster_->supervisor, std::move(failure));
    return;
  }
  RefuseAll();
  BeginIfComplete();
}

void CoordinatorState::RefuseAll() {
  const Refused refusal = RefusalOf(failure_);
  const auto refuse = [&](const std::vector<caf::strong_actor_ptr>& all) {
    for (const caf::strong_actor_ptr& each : all) Answer(each, refusal);
  };
  refuse(members_->TakeJoining());
  refuse(std::exchange(awaiting_supervisor_, {}));
  refuse(keys_.TakeWaiting());
}

void CoordinatorState::OnHalt() {
  halted_ = true;
  if (muster_) self_->send(muster_->supervisor, halt_atom::value);
}

void CoordinatorState::OnJobEnded(const JobEnded& ended) {
  if (ended_) return;
  ended_ = ended;
  muster_.reset();
  if (failure_.ok()) {
    failure_ =
        absl::Status(static_cast<absl::StatusCode>(ended.code), ended.message);
  }
  if (failure_.ok()) failure_ = absl::CancelledError("the job has ended");
  RefuseAll();
  for (int process = 0; process < members_->size(); ++process) {
    Answer(members_->agent(process), ended);
  }
  Leave(0);
}

void CoordinatorState::OnTraceShare(const TraceShare& share) {
  if (!IsPeer(share.generation, share.process)) return;
  absl::StatusOr<std::vector<StampedEvent>> events = DecodeEvents(share.events);
  // An incomplete trace is no reason for the job to fail.
  if (trace_ != nullptr && events.ok()) trace_->Add(*std::move(events));
}

void CoordinatorState::OnFarewell(const Farewell& farewell) {
  if (IsPeer(farewell.generation, farewell.process)) Leave(farewell.process);
}

void CoordinatorState::Leave(int process) {
  members_->SetGone(process);
  liveness_->Forget(process);
  if (!ended_ || !members_->AllGone()) return;
  if (!gone_->HasBeenNotified()) gone_->Notify();
  self_->quit();
}

void CoordinatorState::OnDown(const caf::down_msg& down) {
  const int process = members_->ProcessOf(down.source);
  if (process < 0) return;
  if (!members_->IsGone(process)) {
    Fail(BlameOwnPause(absl::UnavailableError(absl::StrCat(
             members_->Describe(process),
             " is gone: its connection was closed; see its output"))),
         /*lost=*/process);
  }
  Leave(process);
}

CoordinatorActor::behavior_type CoordinatorBehavior(
    CoordinatorState::Self self, const ClusterOptions& options,
    CoordinatorState::Gone gone, TraceSink* trace) {
  self->state.Init(self, options, std::move(gone), trace);
  self->set_down_handler(
      [=](caf::down_msg& down) { self->state.OnDown(down); });
  return {
      [=](const Join& join) { self->state.OnJoin(join); },
      [=](const Welcome& offer) { self->state.OnOffer(offer); },
      [=](const SetKey& set) { self->state.OnSetKey(set); },
      [=](const GetKey& get) { self->state.OnGetKey(get); },
      [=](const GetSupervisor& get) { self->state.OnGetSupervisor(get); },
      [=](const CrewReady& crew) { self->state.OnCrewReady(crew); },
      [=](const Muster& muster) { self->state.OnMuster(muster); },
      [=](const Heartbeat& beat) { self->state.OnHeartbeat(beat); },
      [=](const Failure& failure) { self->state.OnFailure(failure); },
      [=](halt_atom) { self->state.OnHalt(); },
      [=](const JobEnded& ended) { self->state.OnJobEnded(ended); },
      [=](const TraceShare& share) { self->state.OnTraceShare(share); },
      [=](const Farewell& farewell) { self->state.OnFarewell(farewell); },
      [=](beat_atom) { self->state.OnBeat(); },
  };
}

}  // namespace troupe::actors
