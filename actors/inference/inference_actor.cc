#include "actors/inference/inference_actor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/caf/actor_timeout.h"
#include "actors/caf/status_error.h"
#include "actors/protocol/strand_guard.h"
#include "actors/strands/compute_strand.h"
#include "actors/strands/stage_link.h"
#include "actors/supervision/held_verdict.h"

namespace troupe::actors {

void InferenceState::Init(Self self, ProcessContextPtr process,
                          const std::shared_ptr<const Checkpoint>& checkpoint) {
  self_ = self;
  process_ = std::move(process);
  for (const RankContextPtr& context : process_->ranks) {
    computes_.push_back(SpawnStrand(self->system(), ComputeBehavior, context,
                                    FailureSink(self), checkpoint));
    self->monitor(computes_.back());
  }
  done_.resize(computes_.size());
  peak_bytes_.resize(computes_.size());
  const pipeline::Plan& plan = *process_->plan;
  std::vector<ComputeActor> stages;
  for (const pipeline::StagePlan& stage : plan.stages) {
    stages.push_back(computes_[plan.mesh.RankOf({/*dp=*/0, stage.place.pp})]);
  }
  auto peers = std::make_shared<ComputePeers>();
  peers->rank = StepsSink(self);
  if (stages.size() > 1) {
    peers->stages = LinkLocalStages(std::move(stages), process_->hooks);
  }
  const ComputePeersPtr shared = std::move(peers);
  for (const ComputeActor& compute : computes_) self->send(compute, shared);
}

InferenceState::~InferenceState() {
  End(absl::CancelledError("the model was given up before it had answered"));
}

void InferenceState::OnCall(InferenceCallPtr call) {
  if (!failure_.ok()) {
    call->Set(failure_);
    return;
  }
  if (call->inputs().empty()) {
    call->Set(InferenceAnswer{{}, peak_bytes_});
    return;
  }
  if (calls_.empty()) last_sign_ = self_->clock().now();
  for (const nn::Tensor& input : call->inputs()) Feed(input, call->texts());
  calls_.push_back({std::move(call), {}});
  if (!std::exchange(watching_, true)) {
    Watch(ActorTimeout(process_->spec->timeout));
  }
}

void InferenceState::Feed(const nn::Tensor& input,
                          const nn::TextPlaces& texts) {
  const pipeline::Plan& plan = *process_->plan;
  const int first = plan.mesh.RankOf({/*dp=*/0, plan.stages[0].place.pp});
  for (int rank = 0; rank < static_cast<int>(computes_.size()); ++rank) {
    StepBatches batches(1);
    batches[0].texts = texts;
    if (rank == first) batches[0].inputs = input;
    RunSteps run;
    run.kind = StepKind::kPredict;
    run.first = steps_;
    run.steps.push_back(std::move(batches));
    self_->send(computes_[rank], std::move(run));
  }
  ++steps_;
}

void InferenceState::OnStepsDone(StepsDone& done) {
  if (!failure_.ok()) return;
  last_sign_ = self_->clock().now();
  const int rank =
      RankOf(caf::actor_cast<caf::actor_addr>(self_->current_sender()));
  if (rank < 0) return;
  done_[rank] = done.first + static_cast<std::int64_t>(done.losses.size());
  peak_bytes_[rank] = done.peak_bytes;
  for (nn::Tensor& output : done.outputs) {
    Pending& front = calls_.front();
    front.outputs.push_back(std::move(output));
    if (front.outputs.size() < front.call->inputs().size()) continue;
    front.call->Set(InferenceAnswer{std::move(front.outputs), peak_bytes_});
    calls_.pop_front();
  }
}

void InferenceState::Watch(std::chrono::nanoseconds delay) {
  self_->delayed_send(self_, delay, watch_atom::value);
}

void InferenceState::OnWatch() {
  watching_ = false;
  if (!failure_.ok() || calls_.empty()) return;
  const auto timeout = ActorTimeout(process_->spec->timeout);
  const auto silent = self_->clock().now() - last_sign_;
  if (silent >= timeout) {
    End(absl::DeadlineExceededError(
        absl::StrCat("no stage has said anything for ",
                     absl::FormatDuration(process_->spec->timeout), " (",
                     WhereRanksStand(), ")")));
    return;
  }
  watching_ = true;
  Watch(timeout - silent);
}

std::string InferenceState::WhereRanksStand() const {
  std::string where;
  for (std::size_t rank = 0; rank < done_.size(); ++rank) {
    absl::StrAppend(&where, rank > 0 ? ", " : "", "rank ", rank, " has done ",
                    done_[rank]);
  }
  return absl::StrCat(where, " of ", steps_, " inputs");
}

int InferenceState::RankOf(const caf::actor_addr& actor) const {
  for (std::size_t rank = 0; rank < computes_.size(); ++rank) {
    if (actor == computes_[rank]) return static_cast<int>(rank);
  }
  return -1;
}

void InferenceState::OnDown(const caf::down_msg& down) {
  absl::Status status = FromError(self_->system(), down.reason);
  if (status.ok()) status = absl::InternalError("ended before its model");
  End(StatusOf(MakeFailure(process_->generation, RankOf(down.source), "compute",
                           status)));
}

void InferenceState::End(const absl::Status& status) {
  if (process_ == nullptr || !failure_.ok()) return;
  failure_ = status;
  for (const Pending& pending : calls_) pending.call->Set(status);
  calls_.clear();
  for (const RankContextPtr& context : process_->ranks) {
    context->groups.ForEach(
        [&](comm::Communicator& group) { group.Abort(status); });
  }
  for (const ComputeActor& compute : computes_) {
    caf::anon_send_exit(compute, caf::exit_reason::user_shutdown);
  }
}

InferenceActor::behavior_type InferenceBehavior(
    InferenceState::Self self, ProcessContextPtr process,
    std::shared_ptr<const Checkpoint> checkpoint) {
  self->set_down_handler(
      [=](caf::down_msg& down) { self->state.OnDown(down); });
  TellExceptions(self,
                 [=](const absl::Status& status) { self->state.End(status); });
  self->state.Init(self, std::move(process), checkpoint);
  return {
      [=](InferenceCallPtr& call) { self->state.OnCall(std::move(call)); },
      [=](StepsDone& done) { self->state.OnStepsDone(done); },
      [=](const Failure& failure) { self->state.End(StatusOf(failure)); },
      [=](watch_atom) { self->state.OnWatch(); },
  };
}

}  // namespace troupe::actors
