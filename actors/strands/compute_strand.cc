#include "actors/strands/compute_strand.h"

#include <utility>

#include "absl/types/span.h"
#include "actors/engine/snapshot.h"
#include "actors/protocol/strand_guard.h"
#include "actors/strands/comm_strand.h"
#include "actors/strands/stage_link.h"
#include "base/check.h"

namespace troupe::actors {

absl::Status ComputeState::Init(Self self, RankContextPtr context,
                                const Checkpoint* checkpoint) {
  self_ = self;
  context_ = std::move(context);
  StepRunner::Setup setup;
  setup.rank = context_->rank;
  setup.local_rank = context_->local_rank;
  setup.spec = context_->spec.get();
  setup.plan = context_->plan.get();
  setup.train_table = context_->train_table;
  setup.groups = &context_->groups;
  setup.start_threads = context_->start_threads;
  setup.position = context_->position.get();
  if (context_->shared_memory != nullptr) {
    setup.peer_memory.allocator = &context_->shared_memory->allocator();
    setup.peer_memory.share_pages =
        [memory = context_->shared_memory](
            absl::Span<const absl::Span<char>> pages) {
          return memory->Share(pages);
        };
  }
  StrandFiber::Options options;
  options.shared_thread = IsSimulated(self->system());
  options.timeout = context_->spec->timeout;
  notify_ = [weak = caf::actor_cast<caf::weak_actor_ptr>(ComputeActor(self))] {
    if (auto strong = weak.lock()) {
      caf::anon_send(caf::actor_cast<ComputeActor>(strong), drive_atom::value);
    }
  };
  options.notify = notify_;
  fiber_.emplace(std::move(options), [this] { failure_ = RunQueue(); });
  TROUPE_ASSIGN_OR_RETURN(runner_, StepRunner::Create(setup, this, &*fiber_));
  queues_ = runner_->kernels().queues();
  if (queues_ != nullptr) {
    TROUPE_RETURN_IF_ERROR(
        queues_->SetWakeup(notify_, /*watch=*/!IsSimulated(self->system())));
  }
  return checkpoint == nullptr ? absl::OkStatus()
                               : runner_->Restore(*checkpoint);
}

absl::Status ComputeState::Enqueue(const RunSteps& steps) {
  queue_.push_back(steps);
  return running_ ? absl::OkStatus() : Go();
}

absl::Status ComputeState::OnLaunched(const Launched& launched) {
  if (launched.generation != context_->generation) return absl::OkStatus();
  if (launched.code != 0) {
    return runner_->CollectiveFailed(
        launched.step, launched.action,
        absl::Status(static_cast<absl::StatusCode>(launched.code),
                     launched.message));
  }
  TROUPE_RETURN_IF_ERROR(
      runner_->CollectiveDone(launched.step, launched.action, launched.done));
  DriveAfter(launched.done);
  TellFailure(launched);
  return Go();
}

absl::Status ComputeState::OnTransfer(const Transfer& transfer) {
  if (transfer.generation != context_->generation) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(runner_->Deliver(transfer));
  DriveAfter(transfer.ready);
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

absl::Status ComputeState::OnDrive() {
  driving_ = false;
  bool worked = queues_ != nullptr && queues_->Progress();
  TROUPE_RETURN_IF_ERROR(Resume());
  if (queues_ == nullptr) return absl::OkStatus();
  // The fiber may have enqueued more work.
  worked = worked || queues_->Progress();
  if (worked) DriveLater();
  return SendWhatIsThere();
}

void ComputeState::DriveLater() {
  if (driving_) return;
  driving_ = true;
  self_->send(self_, drive_atom::value);
}

void ComputeState::DriveAfter(const base::Event& event) {
  if (queues_ == nullptr) return;
  event.OnReady([notify = notify_](const absl::Status&) { notify(); });
}

void ComputeState::TellFailure(const Launched& launched) {
  if (launched.done.ready() && launched.done.status().ok()) return;
  Launched failed = launched;
  failed.done = base::Event();
  launched.done.OnReady(
      [failed, weak = caf::actor_cast<caf::weak_actor_ptr>(
                   ComputeActor(self_))](const absl::Status& status) mutable {
        if (status.ok()) return;
        failed.code = status.raw_code();
        failed.message = std::string(status.message());
        if (auto strong = weak.lock()) {
          caf::anon_send(caf::actor_cast<ComputeActor>(strong), failed);
        }
      });
}

absl::Status ComputeState::Go() {
  TROUPE_RETURN_IF_ERROR(Resume());
  if (queues_ != nullptr) DriveLater();
  return absl::OkStatus();
}

absl::Status ComputeState::Resume() {
  // The resume message under way is handled after all news in the mailbox.
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
    while (queue_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(const bool ran, runner_->AdvanceTail());
      if (!ran) fiber_->AwaitNews();
    }
    running_ = true;
    TROUPE_RETURN_IF_ERROR(RunFront());
    running_ = false;
  }
}

absl::Status ComputeState::RunFront() {
  RunSteps front = std::move(queue_.front());
  queue_.pop_front();
  if (SharesState(front.kind)) {
    TROUPE_RETURN_IF_ERROR(runner_->ShareState(front.kind, front.first));
    StepsDone done;
    done.kind = front.kind;
    done.first = front.first;
    self_->send(peers_->rank, std::move(done));
    return absl::OkStatus();
  }
  Run run;
  run.done.kind = front.kind;
  run.done.first = front.first;
  run.steps = front.steps.size();
  runs_.push_back(std::move(run));
  std::int64_t step = front.first;
  for (StepBatches& batches : front.steps) {
    TROUPE_RETURN_IF_ERROR(
        runner_->RunStep(front.kind, step, std::move(batches)));
    ++step;
  }
  return absl::OkStatus();
}

absl::Status ComputeState::StepDone(StepKind kind, std::int64_t step) {
  const TestHooks* const hooks = context_->hooks;
  if (hooks != nullptr && hooks->after_step && kind == StepKind::kTrain) {
    for (int chunk = 0; chunk < runner_->chunk_count(); ++chunk) {
      hooks->after_step(context_->rank, step, runner_->arena(chunk));
    }
  }
  return SendWhatIsThere();
}

absl::Status ComputeState::SendWhatIsThere() {
  while (!runs_.empty()) {
    TROUPE_ASSIGN_OR_RETURN(std::optional<LossBits> loss, runner_->TakeLoss());
    if (!loss.has_value()) break;
    Run& run = runs_.front();
    run.done.losses.push_back(*loss);
    if (run.done.kind == StepKind::kPredict && runner_->has_outputs()) {
      run.done.outputs.push_back(runner_->TakeOutput());
    }
    if (run.done.losses.size() < run.steps) continue;
    run.done.peak_bytes = runner_->peak_bytes();
    self_->send(peers_->rank, std::move(run.done));
    runs_.pop_front();
  }
  while (!snapshots_.empty() && snapshots_.front().snapshot.ready.ready()) {
    SnapshotRequest& request = snapshots_.front();
    TROUPE_RETURN_IF_ERROR(request.snapshot.ready.status());
    TROUPE_RETURN_IF_ERROR(AdvanceHash(request.snapshot));
    if (request.snapshot.hash != nullptr) {
      DriveLater();  // a further copy was enqueued
      continue;
    }
    request.promise.deliver(SnapshotPtr(std::move(request.snapshot.snapshot)));
    snapshots_.pop_front();
  }
  return absl::OkStatus();
}

absl::StatusOr<PendingSnapshot> ComputeState::MakeSnapshot(
    const TakeSnapshot& take) {
  TROUPE_ASSIGN_OR_RETURN(
      PendingSnapshot pending,
      runner_->MakeSnapshot(take.step,
                            {take.copies, take.compares, take.in_place}));
  if (queues_ == nullptr) TROUPE_RETURN_IF_ERROR(AdvanceHash(pending));
  return pending;
}

caf::result<SnapshotPtr> ComputeState::Answer(PendingSnapshot pending) {
  if (queues_ == nullptr) return SnapshotPtr(std::move(pending.snapshot));
  auto promise = self_->make_response_promise<SnapshotPtr>();
  snapshots_.push_back({promise, std::move(pending)});
  DriveLater();
  return promise;
}

void ComputeState::Launch(int action, pipeline::GroupId group,
                          const comm::Collective& collective,
                          const comm::Event& after) {
  actors::Launch launch;
  launch.generation = context_->generation;
  launch.step = runner_->launched_step();
  launch.action = action;
  launch.group = group;
  launch.collective = collective;
  launch.after = after;
  launch.answer_at_once = queues_ != nullptr;
  if (!runner_->reduces_on_device()) {
    return self_->send(peers_->comm, std::move(launch));
  }
  // The collective is work of the device, which only this strand may call.
  absl::StatusOr<comm::Event> done =
      context_->groups.Of(group).Start(collective, after);
  if (done.ok() && runner_->recording()) {
    // The strand reads no message until the step is recorded.
    const absl::Status ended =
        runner_->CollectiveDone(launch.step, action, *done);
    if (ended.ok()) return;
    done = ended;
  }
  Launched launched = AnswerTo(launch, done.status());
  if (done.ok()) launched.done = *done;
  self_->send(self_, std::move(launched));
}

void ComputeState::Send(int stage, bool forward, int micro_batch,
                        const nn::TensorList& tensors,
                        const base::Event& ready) {
  Transfer transfer;
  transfer.generation = context_->generation;
  transfer.stage = stage;
  transfer.step = runner_->step();
  transfer.kind = runner_->kind();
  transfer.forward = forward;
  transfer.micro_batch = micro_batch;
  transfer.tensors = tensors;
  transfer.ready = ready;
  if (queues_ != nullptr && !tensors.empty() &&
      peers_->stages->NeedsHostMemory(stage)) {
    MoveToHost(transfer);
  }
  peers_->stages->Send(stage, std::move(transfer));
}

void ComputeState::MoveToHost(Transfer& transfer) {
  nn::Kernels& kernels = runner_->kernels();
  nn::Wait(kernels, nn::Queue::kReadBack, transfer.ready);
  const nn::TensorList on_device = transfer.tensors;
  for (nn::Tensor& tensor : transfer.tensors) {
    if (!tensor.defined()) continue;
    const absl::StatusOr<nn::Tensor> copy =
        nn::CopyToHost(kernels, nn::Queue::kReadBack, tensor);
    if (!copy.ok()) {
      // Nothing can be sent: the receiver gets the error by the ready event.
      transfer.ready = base::Event::Make();
      transfer.ready.Complete(copy.status());
      return;
    }
    tensor = *copy;
  }
  transfer.ready = nn::Record(kernels, nn::Queue::kReadBack);
  // Keeps the copied tensors until then.
  transfer.ready.OnReady([kept = on_device](const absl::Status&) {});
  DriveLater();
}

ComputeActor::behavior_type ComputeBehavior(
    ComputeState::Self self, RankContextPtr context, FailureSink failures,
    std::shared_ptr<const Checkpoint> checkpoint) {
  const FailureSource source = {failures, context->generation, context->rank,
                                "compute"};
  GuardStrand(self, source);
  const auto check = [=](const absl::Status& status) {
    if (!status.ok()) ReportFailure(self, source, status);
  };
  check(self->state.Init(self, std::move(context), checkpoint.get()));
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
      [=](snapshot_atom, const TakeSnapshot& take) -> caf::result<SnapshotPtr> {
        auto snapshot = self->state.MakeSnapshot(take);
        if (snapshot.ok()) return self->state.Answer(*std::move(snapshot));
        check(snapshot.status());
        return ToError(snapshot.status());
      },
  };
}

}  // namespace troupe::actors
