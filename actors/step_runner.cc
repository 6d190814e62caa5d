#include "actors/step_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/open_kernels.h"
#include "pipeline/compute_order.h"

namespace troupe::actors {
namespace {

using pipeline::ActionKind;
using pipeline::SignalKind;

Chunk::Mode ModeOf(ActionKind backward) {
  switch (backward) {
    case ActionKind::kBackwardInputs:
      return Chunk::Mode::kInputs;
    case ActionKind::kBackwardWeights:
      return Chunk::Mode::kWeights;
    default:
      return Chunk::Mode::kWhole;
  }
}

// The rank's table for training, in the order that its layers need.
pipeline::StepTable TrainTableOf(const StepRunner::Setup& setup) {
  pipeline::StepTable table = setup.train_table;
  if (!setup.plan->StageOf(setup.rank).layer_axes.empty()) {
    pipeline::KeepComputeOrder(table);
  }
  return table;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepRunner>> StepRunner::Create(
    const Setup& setup, Host* host, StrandWait* wait) {
  std::unique_ptr<StepRunner> runner(new StepRunner(setup, host, wait));
  TROUPE_RETURN_IF_ERROR(runner->Init());
  return runner;
}

StepRunner::StepRunner(const Setup& setup, Host* host, StrandWait* wait)
    : setup_(setup),
      host_(host),
      wait_(wait),
      trace_(setup.spec->trace, setup.rank),
      reducer_({setup.world, setup.dp,
                setup.plan->RankPlanOf(setup.rank).reduce_inline},
               host, wait),
      train_(TrainTableOf(setup),
             static_cast<int>(setup.plan->StageOf(setup.rank).buckets.size())),
      evaluate_(setup.plan->RankPlanOf(setup.rank).evaluate),
      cursor_(&train_) {}

absl::Status StepRunner::Init() {
  const JobSpec& spec = *setup_.spec;
  if (spec.kernels) {
    TROUPE_ASSIGN_OR_RETURN(kernels_, spec.kernels());
  } else {
    TROUPE_ASSIGN_OR_RETURN(
        kernels_,
        nn::OpenKernels(spec.device, {setup_.plan->threads_per_rank}));
  }
  TROUPE_ASSIGN_OR_RETURN(
      loss_, StepLoss::Create(kernels_->allocator(), spec.stop_on_nan,
                              spec.loss_scale));
  for (const AxisGroup& group : setup_.layer_groups) {
    layer_collectives_.push_back(
        std::make_unique<LayerCollectives>(group.comm.get(), wait_));
    axes_.push_back({group.axis, layer_collectives_.back().get()});
  }
  Chunk::Setup chunk;
  chunk.spec = &spec;
  chunk.plan = setup_.plan;
  chunk.stage = setup_.plan->mesh.CoordsOf(setup_.rank).pp;
  chunk.kernels = kernels_;
  chunk.trace = &trace_;
  chunk.axes = axes_;
  chunk.start_threads = setup_.start_threads;
  TROUPE_ASSIGN_OR_RETURN(chunk_, Chunk::Create(chunk, this));
  return absl::OkStatus();
}

absl::Status StepRunner::Begin(StepKind kind, std::int64_t step,
                               StepBatches batches) {
  kind_ = kind;
  step_ = step;
  cursor_ = kind == StepKind::kTrain ? &train_ : &evaluate_;
  TROUPE_CHECK(
      static_cast<int>(batches.size()) == cursor_->table().micro_batches(),
      "a step has one batch per micro-batch");
  cursor_->Begin();
  trace_.BeginStep(kind, step);
  loss_->BeginStep(kind, step);
  chunk_->BeginStep(kind, step, std::move(batches));
  std::vector<Transfer> early;
  early.swap(early_);
  for (const Transfer& transfer : early) {
    TROUPE_RETURN_IF_ERROR(Deliver(transfer));
  }
  return absl::OkStatus();
}

absl::Status StepRunner::RunStep(StepKind kind, std::int64_t step,
                                 StepBatches batches) {
  TROUPE_RETURN_IF_ERROR(Begin(kind, step, std::move(batches)));
  while (!cursor_->complete()) {
    TROUPE_ASSIGN_OR_RETURN(const bool ran, RunNext(/*busy=*/false));
    if (!ran) wait_->AwaitNews();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> StepRunner::RunNext(bool busy) {
  const int next = cursor_->NextRunnable(busy);
  if (next < 0) return false;
  TROUPE_RETURN_IF_ERROR(Run(next));
  wait_->TakeNews(/*expected=*/false);
  return true;
}

absl::Status StepRunner::Run(int id) {
  const pipeline::Action& action = ActionOf(id);
  cursor_->Start(id);
  switch (action.kind) {
    case ActionKind::kForward:
      TROUPE_RETURN_IF_ERROR(RunForward(action));
      break;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInputs:
    case ActionKind::kBackwardWeights:
      TROUPE_RETURN_IF_ERROR(RunBackward(action));
      break;
    case ActionKind::kSendActivation:
      host_->Send(/*forward=*/true, action.index, chunk_->output(action.index));
      break;
    case ActionKind::kSendGradient:
      host_->Send(/*forward=*/false, action.index,
                  chunk_->TakeInputGradient(action.index));
      break;
    case ActionKind::kReduceLoss:
    case ActionKind::kReduceBucket:
    case ActionKind::kReduceUpdateBucket:
      return Reduce(id);  // finished by Reduced
    case ActionKind::kUpdateBucket:
      TROUPE_RETURN_IF_ERROR(Update(action));
      break;
    case ActionKind::kRecvActivation:
    case ActionKind::kRecvGradient:
      TROUPE_CHECK(false, "a receive is finished by Deliver()");
  }
  cursor_->Finish(id);
  return absl::OkStatus();
}

absl::Status StepRunner::RunForward(const pipeline::Action& action) {
  const TraceScope scope(trace_, action);
  TROUPE_RETURN_IF_ERROR(chunk_->Forward(action.index));
  if (!chunk_->is_last()) return absl::OkStatus();
  return loss_->Add(action.index, chunk_->output(action.index));
}

absl::Status StepRunner::RunBackward(const pipeline::Action& action) {
  const TraceScope scope(trace_, action);
  chunk_->BeginBackward(action.index, ModeOf(action.kind));
  while (true) {
    // Buckets are launched and updated while the rest still runs.
    for (bool ran = true; ran;) {
      TROUPE_ASSIGN_OR_RETURN(ran, RunNext(/*busy=*/true));
    }
    TROUPE_ASSIGN_OR_RETURN(const bool more, chunk_->NextPiece());
    if (!more) return absl::OkStatus();
    wait_->TakeNews(/*expected=*/reducer_.in_flight() > 0);
  }
}

void StepRunner::BucketReady(int bucket) {
  cursor_->Give({SignalKind::kBucketReady, bucket});
}

void StepRunner::BucketReleased(int bucket) {
  cursor_->Give({SignalKind::kBucketReleased, bucket});
}

comm::Collective StepRunner::CollectiveOf(const pipeline::Action& action) {
  switch (action.kind) {
    case ActionKind::kReduceBucket:
      return chunk_->Reduce(action.index);
    case ActionKind::kReduceUpdateBucket:
      return chunk_->ReduceUpdate(action.index, loss_->scalars());
    default:
      return loss_->Sum();
  }
}

absl::Status StepRunner::Reduce(int id) {
  const pipeline::Action& action = ActionOf(id);
  trace_.Begin(action);
  TROUPE_ASSIGN_OR_RETURN(
      const bool done,
      reducer_.Start(id, pipeline::GroupOf(action.kind), CollectiveOf(action)));
  if (done) Reduced(id);
  return absl::OkStatus();
}

void StepRunner::CollectiveDone(int id) {
  reducer_.Finish();
  Reduced(id);
}

void StepRunner::Reduced(int id) {
  const pipeline::Action& action = ActionOf(id);
  cursor_->Finish(id);
  if (action.kind == ActionKind::kReduceUpdateBucket) {
    chunk_->ReleaseGrads(action.index);
  }
  cursor_->Give(
      action.kind == ActionKind::kReduceLoss
          ? pipeline::Signal{SignalKind::kLossReduced, 0}
          : pipeline::Signal{SignalKind::kBucketReduced, action.index});
  trace_.End(action);
}

absl::Status StepRunner::Update(const pipeline::Action& action) {
  const TraceScope scope(trace_, action);
  return chunk_->Update(action.index, loss_->scalars());
}

absl::Status StepRunner::Deliver(const Transfer& transfer) {
  if (transfer.step != step_ || transfer.kind != kind_ || cursor_->complete()) {
    early_.push_back(transfer);
    return absl::OkStatus();
  }
  const int m = transfer.micro_batch;
  const int receive =
      cursor_->table().Find(transfer.forward ? ActionKind::kRecvActivation
                                             : ActionKind::kRecvGradient,
                            m);
  const bool again =
      receive >= 0 && cursor_->Given({SignalKind::kDone, receive});
  if (receive < 0 || again) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", setup_.rank, ", step ", step_ + 1, ": got ",
        transfer.forward ? "an activation" : "a gradient", " of micro-batch ",
        m, again ? " a second time" : ", which its table does not receive"));
  }
  transfer.forward ? chunk_->ReceiveActivation(m, transfer.tensor)
                   : chunk_->ReceiveGradient(m, transfer.tensor);
  cursor_->Finish(receive);
  return absl::OkStatus();
}

absl::StatusOr<SnapshotPtr> StepRunner::MakeSnapshot(std::int64_t step) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->step = step;
  snapshot->rank = setup_.rank;
  TROUPE_RETURN_IF_ERROR(chunk_->CopyInto(snapshot->tensors));
  return snapshot;
}

}  // namespace troupe::actors
