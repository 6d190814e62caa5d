#include "actors/compute_strand.h"

#include <utility>

#include "actors/strand_guard.h"
#include "base/check.h"

namespace troupe::actors {

absl::Status ComputeState::Init(Self self, RankContextPtr context) {
  self_ = self;
  context_ = std::move(context);
  StepRunner::Setup setup;
  setup.rank = context_->rank;
  setup.spec = context_->spec.get();
  setup.plan = context_->plan.get();
  setup.train_table = context_->train_table;
  setup.world = context_->world.get();
  setup.dp = context_->dp.get();
  setup.simulated = IsSimulated(self->system());
  if (!setup.simulated) setup.start_threads = context_->start_threads;
  TROUPE_ASSIGN_OR_RETURN(runner_, StepRunner::Create(setup, this));
  if (context_->checkpoint == nullptr) return absl::OkStatus();
  return runner_->Restore(*context_->checkpoint);
}

absl::Status ComputeState::Enqueue(const RunSteps& steps) {
  queue_.push_back(steps);
  return running_ ? absl::OkStatus() : Go();
}

absl::Status ComputeState::OnLaunched(const Launched& launched) {
  if (launched.code != 0) {
    return absl::Status(static_cast<absl::StatusCode>(launched.code),
                        launched.message);
  }
  runner_->CollectiveDone(launched.action);
  return Go();
}

absl::Status ComputeState::OnTransfer(const Transfer& transfer) {
  if (transfer.generation != context_->generation) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(runner_->Deliver(transfer));
  return Go();
}

absl::Status ComputeState::OnResume() {
  if (rounds_left_ > 0) {
    --rounds_left_;
    self_->send(self_, resume_atom::value);
    return absl::OkStatus();
  }
  resuming_ = false;
  return Go();
}

absl::Status ComputeState::Go() {
  // A resume is under way: it comes after the news that is in the mailbox.
  if (resuming_) return absl::OkStatus();
  const TestHooks* const hooks = context_->hooks;
  while (true) {
    if (!running_) {
      if (queue_.empty()) return absl::OkStatus();
      TROUPE_RETURN_IF_ERROR(BeginNext());
    }
    TROUPE_ASSIGN_OR_RETURN(const StepRunner::State state, runner_->Advance());
    switch (state) {
      case StepRunner::State::kWaiting:
        return absl::OkStatus();
      case StepRunner::State::kYielded:
        resuming_ = true;
        if (hooks != nullptr && hooks->mailbox_rounds) {
          rounds_left_ = hooks->mailbox_rounds();
        }
        self_->send(self_, resume_atom::value);
        return absl::OkStatus();
      case StepRunner::State::kDone:
        FinishStep();
        break;
    }
  }
}

absl::Status ComputeState::BeginNext() {
  RunSteps& front = queue_.front();
  if (next_in_front_ == 0) done_ = StepsDone{front.kind, front.first, {}};
  running_ = true;
  return runner_->Begin(front.kind,
                        front.first + static_cast<std::int64_t>(next_in_front_),
                        std::move(front.steps[next_in_front_]));
}

void ComputeState::FinishStep() {
  running_ = false;
  const TestHooks* const hooks = context_->hooks;
  if (hooks != nullptr && hooks->after_step &&
      runner_->kind() == StepKind::kTrain) {
    hooks->after_step(context_->rank, runner_->step(), runner_->arena());
  }
  done_.losses.push_back(runner_->loss());
  if (++next_in_front_ < queue_.front().steps.size()) return;
  queue_.pop_front();
  next_in_front_ = 0;
  self_->send(peers_->rank, std::move(done_));
}

void ComputeState::Launch(int action, GroupKind group,
                          const comm::Collective& collective) {
  actors::Launch launch;
  launch.step = runner_->step();
  launch.action = action;
  launch.group = group;
  launch.collective = collective;
  self_->send(peers_->comm, std::move(launch));
}

void ComputeState::Send(bool forward, int micro_batch,
                        const nn::Tensor& tensor) {
  Transfer transfer;
  transfer.generation = context_->generation;
  transfer.step = runner_->step();
  transfer.kind = runner_->kind();
  transfer.forward = forward;
  transfer.micro_batch = micro_batch;
  transfer.tensor = tensor;
  self_->send(forward ? peers_->next_stage : peers_->previous_stage,
              std::move(transfer));
}

ComputeActor::behavior_type ComputeBehavior(ComputeState::Self self,
                                            RankContextPtr context,
                                            SupervisorActor supervisor) {
  const int rank = context->rank;
  GuardStrand(self, supervisor, rank, "compute");
  const auto check = [=](const absl::Status& status) {
    if (!status.ok()) ReportFailure(self, supervisor, rank, "compute", status);
  };
  check(self->state.Init(self, std::move(context)));
  return {
      [=](const ComputePeersPtr& peers) { self->state.Wire(peers); },
      [=](const RunSteps& steps) { check(self->state.Enqueue(steps)); },
      [=](const Launched& launched) {
        check(self->state.OnLaunched(launched));
      },
      [=](const Transfer& transfer) {
        check(self->state.OnTransfer(transfer));
      },
      [=](resume_atom) { check(self->state.OnResume()); },
      [=](snapshot_atom, std::int64_t step) {
        return self->state.MakeSnapshot(step);
      },
  };
}

}  // namespace troupe::actors
