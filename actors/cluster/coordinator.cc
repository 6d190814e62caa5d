#include "actors/cluster/coordinator.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "actors/caf/actor_timeout.h"
#include "actors/cluster/trace_share.h"
#include "actors/protocol/strand_guard.h"
#include "actors/supervision/supervisor.h"
#include "base/field_error.h"

namespace troupe::actors {
namespace {

// Limits on the bytes of a key with its value, and on the keys of the store: an
// address for every pair of processes fits.
constexpr std::size_t kKeyBytesMax = 4096;
constexpr std::size_t kKeysMax = 1 << 17;

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
  round_.emplace(options.processes);
  processes_.resize(options.processes);
  joining_.resize(options.processes);
  liveness_.emplace(ActorTimeout(options.liveness_timeout));
  start_ = last_beat_ = Now();
  self_->delayed_send(self_, UntilNextBeat(start_), beat_atom::value);
}

Liveness::Duration CoordinatorState::UntilNextBeat(TimePoint now) const {
  const Liveness::Duration left = ActorTimeout(options_.join_timeout) -
                                  (now - (roster_ ? welcomed_ : start_));
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

std::string CoordinatorState::Describe(int process) const {
  return roster_ ? roster_->Describe(process) : round_->Describe(process);
}

bool CoordinatorState::IsOther(int process) const {
  return process > 0 && process < static_cast<int>(processes_.size());
}

bool CoordinatorState::IsPeer(std::int32_t generation, int process) const {
  // A process has no generation (0) before its welcome. Neither has a stranger
  // that joined with its number, but that one is not its agent.
  return IsOther(process) &&
         processes_[process].agent == self_->current_sender() &&
         (generation == 0 || (offer_ && generation == offer_->generation));
}

void CoordinatorState::OnJoin(const Join& join) {
  if (RefuseSender()) {
    Admit(join);
    return;
  }
  const absl::Status status = round_->Add(join);
  if (!status.ok()) {
    Answer(self_->current_sender(), RefusalOf(status));
    if (roster_) return;  // a stranger does not end a job that has begun
    Admit(join);
    Fail(status);
    return;
  }
  const int number = join.member.process;
  processes_[number].nonce = join.nonce;
  joining_[number] = self_->current_sender();
  Admit(join);
  WelcomeAllIfComplete();
}

void CoordinatorState::Admit(const Join& join) {
  const int number = join.member.process;
  if (join.agent == nullptr || !IsOther(number) ||
      processes_[number].agent != nullptr) {
    return;
  }
  processes_[number].agent = join.agent;
  self_->monitor(caf::actor_cast<caf::actor>(join.agent));
  liveness_->Watch(number, Now());
  if (ended_) Answer(join.agent, *ended_);
}

void CoordinatorState::OnOffer(const Welcome& offer) {
  offer_ = offer;
  WelcomeAllIfComplete();
}

void CoordinatorState::WelcomeAllIfComplete() {
  if (!failure_.ok() || !round_->complete() || !offer_ || roster_) return;
  roster_.emplace(round_->Members());
  for (std::size_t i = 0; i < joining_.size(); ++i) {
    Welcome welcome = *offer_;
    welcome.nonce = processes_[i].nonce;
    welcome.members = round_->Members();
    if (processes_[i].agent != nullptr) Answer(processes_[i].agent, welcome);
    Answer(joining_[i], std::move(welcome));
  }
  joining_.assign(joining_.size(), nullptr);
  welcomed_ = Now();
}

void CoordinatorState::OnSetKey(const SetKey& set) {
  const bool fits = store_.size() < kKeysMax || store_.count(set.key) != 0;
  if (!fits || set.key.size() + set.value.size() > kKeyBytesMax) {
    Fail(absl::ResourceExhaustedError(absl::StrCat(
        "the store takes ", kKeysMax, " keys of ", kKeyBytesMax,
        " bytes each; it has ", store_.size(), " and got one of ",
        set.key.size() + set.value.size(), " bytes; start fewer processes")));
    return;
  }
  store_[set.key] = set.value;
  const auto awaited = awaited_keys_.find(set.key);
  if (awaited == awaited_keys_.end()) return;
  for (const caf::strong_actor_ptr& each : awaited->second) {
    Answer(each, KeyValue{set.key, set.value});
  }
  awaited_keys_.erase(awaited);
}

void CoordinatorState::OnGetKey(const GetKey& get) {
  if (RefuseSender()) return;
  const auto found = store_.find(get.key);
  if (found != store_.end()) {
    Answer(self_->current_sender(), KeyValue{get.key, found->second});
  } else {
    awaited_keys_[get.key].push_back(self_->current_sender());
  }
}

void CoordinatorState::OnGetSupervisor(const GetSupervisor& get) {
  if (RefuseSender()) return;
  if (!offer_ || get.generation != offer_->generation) return;
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
  processes_[0].has_crew = true;
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
  if (!muster_ || crew.generation != offer_->generation || begun_) return;
  const int process = crew.process;
  if (process <= 0 || process >= roster_->processes() ||
      processes_[process].has_crew) {
    return;
  }
  const int first = roster_->FirstRankOf(process);
  const int count = roster_->FirstRankOf(process + 1) - first;
  const auto lost = std::count(crew.ranks.begin(), crew.ranks.end(), nullptr) +
                    (crew.checkpointer == nullptr);
  if (static_cast<int>(crew.ranks.size()) != count || lost != 0) {
    Fail(absl::InternalError(absl::StrCat(Describe(process), " reported ",
                                          crew.ranks.size(), " ranks; ", lost,
                                          " actors cannot be reached")));
    return;
  }
  for (int i = 0; i < count; ++i) {
    muster_->crew->ranks[first + i] = caf::actor_cast<RankActor>(crew.ranks[i]);
  }
  muster_->crew->checkpointers[process] =
      caf::actor_cast<CheckpointerActor>(crew.checkpointer);
  processes_[process].has_crew = true;
  BeginIfComplete();
}

void CoordinatorState::BeginIfComplete() {
  if (begun_ || !muster_) return;
  // The supervisor ends a job that has failed, with the actors reported so far.
  if (failure_.ok()) {
    for (const Process& process : processes_) {
      if (!process.has_crew) return;
    }
  }
  begun_ = true;
  self_->send(muster_->supervisor, begin_atom::value);
  if (!failure_.ok()) Fail(failure_);
}

void CoordinatorState::OnHeartbeat(const Heartbeat& beat) {
  if (!IsPeer(beat.generation, beat.process)) return;
  liveness_->Heard(beat.process, Now());
  Answer(processes_[beat.process].agent,
         Heartbeat{beat.generation, 0, beat.agent_nanos,
                   absl::GetCurrentTimeNanos()});
}

// Called at each beat. If it is late by more than an interval, this process
// itself was stopped: the others get a new time-out.
void CoordinatorState::NoteOwnPause(TimePoint now) {
  const Liveness::Duration late = now - last_beat_;
  if (late > 2 * liveness_->interval()) liveness_->Restart(now);
  if (late + liveness_->interval() < liveness_->timeout()) return;
  own_pause_ = Pause{now, late};
}

// Returns `lost`, the error about a process that has left. But if process 0
// itself was stopped for so long that others may have taken it for lost, and
// less than a time-out ago, returns an error that blames this pause.
absl::Status CoordinatorState::BlameOwnPause(const absl::Status& lost) {
  const TimePoint now = Now();
  NoteOwnPause(now);
  if (!own_pause_ || now - own_pause_->end >= liveness_->timeout()) return lost;
  return base::WithMessage(
      lost, absl::StrCat(Describe(0), " stood still for ",
                         absl::FormatDuration(
                             absl::Trunc(absl::FromChrono(own_pause_->duration),
                                         absl::Milliseconds(100))),
                         ", and others have left: ", lost.message()));
}

void CoordinatorState::OnBeat() {
  const TimePoint now = Now();
  NoteOwnPause(now);
  last_beat_ = now;
  if (const auto silent = liveness_->FindSilent(now)) {
    const int process = silent->peer;
    Fail(absl::UnavailableError(absl::StrCat(
             Describe(process), " has given no sign of life for ",
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
  std::string late;
  if (!round_->complete() && now - start_ >= timeout) {
    late = round_->DescribeMissing();
    // Process 0 does not wait for the Farewell of processes that are too late.
    for (std::size_t i = 1; i < processes_.size(); ++i) {
      if (processes_[i].agent == nullptr) processes_[i].gone = true;
    }
  } else if (roster_ && now - welcomed_ >= timeout) {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i].has_crew) continue;
      absl::StrAppend(&late, late.empty() ? "" : ", ",
                      Describe(static_cast<int>(i)));
    }
    absl::StrAppend(&late, " did not set up its ranks");
  }
  if (late.empty()) return;
  Fail(absl::DeadlineExceededError(absl::StrCat(
      late, " within ", absl::FormatDuration(options_.join_timeout),
      "; see the output there")));
}

bool CoordinatorState::IsAgent(const caf::strong_actor_ptr& actor) const {
  return actor != nullptr && std::any_of(processes_.begin(), processes_.end(),
                                         [&](const Process& process) {
                                           return process.agent == actor;
                                         });
}

void CoordinatorState::OnFailure(const Failure& failure) {
  // A sender without a generation has not received its welcome yet. Once all
  // have joined, it is one of them, or a stranger that was refused.
  const bool is_ours = failure.generation == 0
                           ? !roster_ || IsAgent(self_->current_sender())
                           : offer_ && failure.generation == offer_->generation;
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
    Failure failure = MakeFailure(offer_->generation, /*rank=*/-1, "", status);
    failure.process = lost;
    self_->send(muster_->supervisor, std::move(failure));
    return;
  }
  RefuseAll();
  BeginIfComplete();
}

void CoordinatorState::RefuseAll() {
  const Refused refusal = RefusalOf(failure_);
  const auto refuse = [&](std::vector<caf::strong_actor_ptr>& all) {
    for (const caf::strong_actor_ptr& each : all) Answer(each, refusal);
    all.assign(all.size(), nullptr);
  };
  refuse(joining_);
  refuse(awaiting_supervisor_);
  for (auto& [key, all] : awaited_keys_) refuse(all);
  awaited_keys_.clear();
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
  for (const Process& process : processes_) Answer(process.agent, ended);
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
  processes_[process].gone = true;
  liveness_->Forget(process);
  if (!ended_) return;
  for (const Process& each : processes_) {
    if (!each.gone) return;
  }
  if (!gone_->HasBeenNotified()) gone_->Notify();
  self_->quit();
}

void CoordinatorState::OnDown(const caf::down_msg& down) {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i].agent == nullptr || down.source != processes_[i].agent) {
      continue;
    }
    const int process = static_cast<int>(i);
    if (!processes_[i].gone) {
      Fail(BlameOwnPause(absl::UnavailableError(absl::StrCat(
               Describe(process),
               " is gone: its connection was closed; see its output"))),
           /*lost=*/process);
    }
    Leave(process);
    return;
  }
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
