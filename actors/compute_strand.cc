#include "actors/compute_strand.h"

#include <utility>

#include "actors/stage_link.h"
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
  setup.layer_groups = context_->layer_groups;
  setup.start_threads = context_->start_threads;
  StrandFiber::Options options;
  options.shared_thread = IsSimulated(self->system());
  options.timeout = context_->spec->timeout;
  options.notify = [weak = caf::actor_cast<caf::weak_actor_ptr>(
                        ComputeActor(self))] {
    if (auto strong = weak.lock()) {
      caf::anon_send(caf::actor_cast<ComputeActor>(strong), drive_atom::value);
    }
  };
  fiber_.emplace(std::move(options), [this] { failure_ = RunQueue(); });
  TROUPE_ASSIGN_OR_RETURN(runner_, StepRunner::Create(setup, this, &*fiber_));
  if (context_->checkpoint == nullptr) return absl::OkStatus();
  return runner_->Restore(*context_->checkpoint);
}

absl::Status ComputeState::Enqueue(const RunSteps& steps) {
  queue_.push_back(steps);
  return running_ ? absl::OkStatus() : Go();
}

absl::Status ComputeState::OnLaunched(const Launched& launched) {
  if (launched.generation != context_->generation) return absl::OkStatus();
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
  looking_ = false;
  return Go();
}

absl::Status ComputeState::Go() {
  // The resume that is under way comes after the news that is in the mailbox.
  if (looking_) return absl::OkStatus();
  switch (fiber_->Resume()) {
    case StrandFiber::State::kWaiting:
      break;
    case StrandFiber::State::kLooking: {
      looking_ = true;
      const TestHooks* const hooks = context_->hooks;
      if (hooks != nullptr && hooks->mailbox_rounds) {
        rounds_left_ = hooks->mailbox_rounds();
      }
      self_->send(self_, resume_atom::value);
      break;
    }
    case StrandFiber::State::kDone:
      return failure_;
  }
  return absl::OkStatus();
}

absl::Status ComputeState::RunQueue() {
  while (true) {
    while (queue_.empty()) fiber_->AwaitNews();
    running_ = true;
    TROUPE_RETURN_IF_ERROR(RunFront());
    running_ = false;
  }
}

absl::Status ComputeState::RunFront() {
  RunSteps front = std::move(queue_.front());
  queue_.pop_front();
  const TestHooks* const hooks = context_->hooks;
  StepsDone done = {front.kind, front.first, {}};
  std::int64_t step = front.first;
  for (StepBatches& batches : front.steps) {
    TROUPE_RETURN_IF_ERROR(
        runner_->RunStep(front.kind, step, std::move(batches)));
    if (hooks != nullptr && hooks->after_step &&
        front.kind == StepKind::kTrain) {
      for (int chunk = 0; chunk < runner_->chunk_count(); ++chunk) {
        hooks->after_step(context_->rank, step, runner_->arena(chunk));
      }
    }
    done.losses.push_back(runner_->loss());
    ++step;
  }
  self_->send(peers_->rank, std::move(done));
  return absl::OkStatus();
}

void ComputeState::Launch(int action, pipeline::GroupId group,
                          const comm::Collective& collective) {
  actors::Launch launch;
  launch.generation = context_->generation;
  launch.step = runner_->step();
  launch.action = action;
  launch.group = group;
  launch.collective = collective;
  self_->send(peers_->comm, std::move(launch));
}

void ComputeState::Send(int stage, bool forward, int micro_batch,
                        const nn::Tensor& tensor) {
  Transfer transfer;
  transfer.generation = context_->generation;
  transfer.stage = stage;
  transfer.step = runner_->step();
  transfer.kind = runner_->kind();
  transfer.forward = forward;
  transfer.micro_batch = micro_batch;
  transfer.tensor = tensor;
  peers_->stages->Send(stage, std::move(transfer));
}

ComputeActor::behavior_type ComputeBehavior(ComputeState::Self self,
                                            RankContextPtr context,
                                            SupervisorActor supervisor) {
  const FailureSource source = {supervisor, context->generation, context->rank,
                                "compute"};
  GuardStrand(self, source);
  const auto check = [=](const absl::Status& status) {
    if (!status.ok()) ReportFailure(self, source, status);
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
      [=](drive_atom) { check(self->state.OnDrive()); },
      [=](snapshot_atom, std::int64_t step) -> caf::result<SnapshotPtr> {
        absl::StatusOr<SnapshotPtr> snapshot = self->state.MakeSnapshot(step);
        if (snapshot.ok()) return *std::move(snapshot);
        check(snapshot.status());
        return ToError(snapshot.status());
      },
  };
}

}  // namespace troupe::actors
