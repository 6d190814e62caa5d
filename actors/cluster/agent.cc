#include "actors/cluster/agent.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "actors/caf/actor_timeout.h"
#include "actors/cluster/host_address.h"
#include "actors/cluster/join_round.h"
#include "actors/protocol/strand_guard.h"

namespace troupe::actors {

JobEnded ToMessage(std::int32_t generation,
                   const absl::StatusOr<JobResult>& result) {
  JobEnded ended;
  ended.generation = generation;
  ended.code = result.status().raw_code();
  ended.message = std::string(result.status().message());
  if (!result.ok()) return ended;
  ended.steps = result->steps;
  ended.loss = Bits(result->loss);
  ended.seconds = Bits(result->seconds);
  ended.stopped = result->stopped;
  ended.evaluated_step = result->evaluation.step;
  ended.evaluated_count = result->evaluation.count;
  ended.evaluated_loss = Bits(result->evaluation.loss);
  ended.evaluated_accuracy = Bits(result->evaluation.accuracy);
  ended.checkpoint = result->checkpoint;
  return ended;
}

absl::StatusOr<JobResult> ToResult(const JobEnded& ended) {
  const auto code = static_cast<absl::StatusCode>(ended.code);
  if (code != absl::StatusCode::kOk) return absl::Status(code, ended.message);
  JobResult result;
  result.steps = ended.steps;
  result.loss = FromBits(ended.loss);
  result.seconds = FromBits(ended.seconds);
  result.stopped = ended.stopped;
  result.evaluation.step = ended.evaluated_step;
  result.evaluation.count = ended.evaluated_count;
  result.evaluation.loss = FromBits(ended.evaluated_loss);
  result.evaluation.accuracy = FromBits(ended.evaluated_accuracy);
  result.checkpoint = ended.checkpoint;
  return result;
}

void AgentState::Init(Self self, const ClusterOptions& options,
                      CoordinatorActor coordinator,
                      caf::strong_actor_ptr waiting, TraceSink* trace,
                      OnEnd on_end) {
  self_ = self;
  options_ = options;
  coordinator_ = std::move(coordinator);
  waiting_ = std::move(waiting);
  trace_ = trace;
  on_end_ = std::move(on_end);
  liveness_.emplace(ActorTimeout(options.liveness_timeout));
  last_beat_ = Now();
  self_->monitor(coordinator_);
  liveness_->Watch(0, last_beat_);
  OnBeat();
}

std::string AgentState::Coordinator() const {
  if (roster_) return roster_->Describe(0);
  return absl::StrCat("process 0 (",
                      HostAndPort(options_.master_host, options_.master_port),
                      ")");
}

void AgentState::OnWelcome(const Welcome& welcome) {
  generation_ = welcome.generation;
  // The job in this process gets the same list, and reports what is wrong.
  if (!CheckMembers(welcome.members, options_.processes).ok()) return;
  roster_.emplace(welcome.members);
}

void AgentState::OnHeartbeat(const Heartbeat& beat) {
  liveness_->Heard(0, Now());
  clock_offset_.Add(beat.agent_nanos, beat.coordinator_nanos,
                    absl::GetCurrentTimeNanos());
}

void AgentState::OnBeat() {
  if (ended_) return;
  const auto now = Now();
  // If the beat is late by more than an interval, this process was stopped.
  if (now - last_beat_ > 2 * liveness_->interval()) liveness_->Restart(now);
  last_beat_ = now;
  if (const auto silent = liveness_->FindSilent(now)) {
    const absl::Status status = absl::UnavailableError(absl::StrCat(
        Coordinator(), " has given no sign of life for ",
        absl::FormatDuration(absl::Trunc(absl::FromChrono(silent->duration),
                                         absl::Milliseconds(100))),
        ": it is stopped, or the network between it and process ",
        options_.process,
        " is; continue it (kill -CONT), or check the network"));
    // If process 0 was only stopped, it will read why this process has left.
    self_->send(coordinator_,
                MakeFailure(generation_, /*rank=*/-1, /*actor=*/"", status));
    Hold(status);
    return;
  }
  self_->send(coordinator_, Heartbeat{generation_, options_.process,
                                      absl::GetCurrentTimeNanos(), 0});
  self_->delayed_send(self_, liveness_->UntilNextCheck(now), beat_atom::value);
}

void AgentState::OnDown() {
  // Peers may report this status, which they get from a collective, before they
  // notice the loss themselves.
  Hold(absl::UnavailableError(
      absl::StrCat(Coordinator(), " is gone: its connection to process ",
                   options_.process, " was closed; see its output")));
}

// The supervisor is lost with process 0, so only local ranks can be asked.
void AgentState::Hold(const absl::Status& status) {
  if (ended_ || verdict_) return;
  if (!crew_ || !roster_) {
    End(status);
    return;
  }
  Failure failure = MakeFailure(generation_, /*rank=*/-1, /*actor=*/"", status);
  failure.process = 0;
  verdict_.emplace(failure, roster_->ranks(), &*roster_, Now());
  for (int rank = 0; rank < roster_->ranks(); ++rank) {
    if (roster_->ProcessOf(rank) != options_.process) verdict_->LeaveOut(rank);
  }
  OnAsk();
}

void AgentState::OnAsk() {
  if (ended_ || !verdict_) return;
  if (verdict_->ripe(Now())) {
    End(verdict_->ToStatus());
    return;
  }
  const int first = roster_->FirstRankOf(options_.process);
  for (int rank : verdict_->ToAsk()) {
    self_->send(caf::actor_cast<RankActor>(crew_->ranks[rank - first]),
                AskWaits{generation_});
  }
  self_->delayed_send(self_, HeldVerdict::kAskEvery, ask_atom::value);
}

void AgentState::OnRankWaits(const RankWaits& answer) {
  if (ended_ || !verdict_ || answer.generation != generation_) return;
  verdict_->Add(answer);
  if (verdict_->ripe(Now())) End(verdict_->ToStatus());
}

void AgentState::OnJobEnded(const JobEnded& ended) {
  // A job that ends before all have joined has no generation yet.
  if (ended.generation != 0 && ended.generation != generation_) return;
  SendTrace();
  self_->send(coordinator_, Farewell{generation_, options_.process});
  End(ToResult(ended));
}

void AgentState::End(const absl::StatusOr<JobResult>& result) {
  if (ended_) return;
  ended_ = result.status();
  EndCrew();
  if (waiting_ != nullptr) {
    const absl::Status status = result.ok()
                                    ? absl::CancelledError("the job has ended")
                                    : result.status();
    caf::anon_send(caf::actor_cast<caf::actor>(waiting_),
                   Refused{status.raw_code(), std::string(status.message())});
    waiting_ = nullptr;
  }
  on_end_(result);
}

void AgentState::OnCrewReady(const CrewReady& crew) {
  crew_ = crew;
  if (ended_) EndCrew();
}

// The supervisor may not have received these ranks, so they are ended here. For
// ranks that it has ended, the message has no effect.
void AgentState::EndCrew() {
  if (!crew_) return;
  EndRank end;
  end.generation = generation_;
  end.code = ended_->raw_code();
  end.message = std::string(ended_->message());
  for (const caf::strong_actor_ptr& rank : crew_->ranks) {
    self_->send(caf::actor_cast<RankActor>(rank), end);
  }
  caf::anon_send_exit(caf::actor_cast<caf::actor>(crew_->checkpointer),
                      caf::exit_reason::user_shutdown);
  crew_.reset();
}

void AgentState::SendTrace() {
  if (trace_ == nullptr) return;
  std::vector<StampedEvent> events = trace_->Take();
  for (StampedEvent& event : events) {
    event.micros += 1e-3 * static_cast<double>(clock_offset_.nanos());
  }
  for (std::string& part : EncodeEvents(events)) {
    self_->send(coordinator_,
                TraceShare{generation_, options_.process, std::move(part)});
  }
}

void AgentState::OnFailure(const Failure& failure) {
  if (!ended_) self_->send(coordinator_, failure);
}

void AgentState::OnHalt() {
  if (!ended_) self_->send(coordinator_, halt_atom::value);
}

AgentActor::behavior_type AgentBehavior(AgentState::Self self,
                                        const ClusterOptions& options,
                                        CoordinatorActor coordinator,
                                        caf::strong_actor_ptr waiting,
                                        TraceSink* trace,
                                        AgentState::OnEnd on_end) {
  self->state.Init(self, options, std::move(coordinator), std::move(waiting),
                   trace, std::move(on_end));
  self->set_down_handler([=](caf::down_msg&) { self->state.OnDown(); });
  return {
      [=](const Heartbeat& beat) { self->state.OnHeartbeat(beat); },
      [=](const JobEnded& ended) { self->state.OnJobEnded(ended); },
      [=](const Welcome& welcome) { self->state.OnWelcome(welcome); },
      [=](const Failure& failure) { self->state.OnFailure(failure); },
      [=](const CrewReady& crew) { self->state.OnCrewReady(crew); },
      [=](const RankWaits& answer) { self->state.OnRankWaits(answer); },
      [=](halt_atom) { self->state.OnHalt(); },
      [=](ask_atom) { self->state.OnAsk(); },
      [=](beat_atom) { self->state.OnBeat(); },
  };
}

}  // namespace troupe::actors
