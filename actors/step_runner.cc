#include "actors/step_runner.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/open_kernels.h"
#include "nn/ops/loss.h"
#include "pipeline/partition.h"

namespace troupe::actors {

using pipeline::ActionKind;
using pipeline::SignalKind;

// What a chunk holds of one micro-batch between its forward and its backward.
struct StepRunner::MicroBatch {
  nn::Tape tape;
  nn::Tensor received_activation, received_gradient;
  nn::Tensor input;   // watched, where it came from another stage
  nn::Tensor output;  // the loss, on the last stage
  nn::Tensor input_gradient;
};

absl::StatusOr<std::unique_ptr<StepRunner>> StepRunner::Create(
    const Setup& setup, Host* host) {
  std::unique_ptr<StepRunner> runner(new StepRunner(setup, host));
  TROUPE_RETURN_IF_ERROR(runner->Init());
  return runner;
}

StepRunner::StepRunner(const Setup& setup, Host* host)
    : setup_(setup),
      host_(host),
      first_stage_(setup.plan->mesh.IsFirstStage(setup.rank)),
      last_stage_(setup.plan->mesh.IsLastStage(setup.rank)),
      inline_(setup.plan->StageOf(setup.rank).reduce_inline &&
              !setup.simulated),
      train_(setup.train_table,
             static_cast<int>(setup.plan->StageOf(setup.rank).buckets.size())),
      evaluate_(setup.plan->StageOf(setup.rank).evaluate),
      cursor_(&train_) {}

StepRunner::~StepRunner() = default;

absl::Status StepRunner::Init() {
  const JobSpec& spec = *setup_.spec;
  const pipeline::Plan& plan = *setup_.plan;
  const pipeline::StagePlan& stage = plan.StageOf(setup_.rank);
  if (spec.kernels) {
    TROUPE_ASSIGN_OR_RETURN(kernels_, spec.kernels());
  } else {
    TROUPE_ASSIGN_OR_RETURN(
        kernels_, nn::OpenKernels(spec.device, {plan.threads_per_rank}));
  }
  TROUPE_ASSIGN_OR_RETURN(
      module_, pipeline::BuildStage(spec.model, plan.cuts,
                                    plan.mesh.CoordsOf(setup_.rank).pp));
  absl::flat_hash_map<std::string, nn::Parameter*> by_name;
  for (nn::Parameter* parameter : module_->Parameters()) {
    by_name[parameter->name] = parameter;
  }
  const auto parameters = [&](const std::vector<int>& numbers) {
    std::vector<nn::Parameter*> chosen;
    for (int i : numbers) chosen.push_back(by_name[stage.parameters[i]]);
    return chosen;
  };
  std::vector<std::vector<nn::Parameter*>> buckets;
  for (const std::vector<int>& bucket : stage.buckets) {
    buckets.push_back(parameters(bucket));
  }
  nn::ParameterArena::Options options;
  options.frozen = parameters(stage.frozen);
  options.pad_elems *= plan.mesh.dp();
  options.threads = setup_.start_threads;
  // A bucket that one micro-batch completes is soon updated: the next one can
  // have the memory of its gradients. Several micro-batches add to all buckets.
  options.keep_grads = buckets.size() < 2 || plan.micro_batches > 1;
  TROUPE_ASSIGN_OR_RETURN(arena_, nn::ParameterArena::Create(
                                      buckets, options, kernels_->allocator()));
  arena_->Initialize(spec.seed);
  for (const nn::ArenaSlot& slot : arena_->slots()) {
    bucket_of_.push_back(slot.bucket);
  }
  optimizer_ = spec.optimizer();
  optimizer_->Attach(*arena_);
  for (int k = 0; k < arena_->num_buckets(); ++k) {
    updates_.push_back(
        std::make_shared<BucketUpdate>(kernels_, optimizer_, arena_, k));
  }
  counts_.resize(arena_->num_buckets());
  stats_ = nn::Tensor::Zeros({nn::ops::kNumLossStats}, nn::DType::kF64,
                             kernels_->allocator());
  micro_batches_ = std::vector<MicroBatch>(plan.micro_batches);
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
  batches_ = std::move(batches);
  cursor_->Begin();
  traced_ = kind == StepKind::kTrain && setup_.spec->trace != nullptr &&
            setup_.spec->trace->Wants(step);
  std::memset(stats_.raw(), 0, stats_.bytes());
  if (kind == StepKind::kTrain) arena_->BeginStep();
  std::vector<Transfer> early;
  early.swap(early_);
  for (const Transfer& transfer : early) Deliver(transfer);
  return absl::OkStatus();
}

absl::StatusOr<StepRunner::State> StepRunner::Advance() {
  while (true) {
    const int next = cursor_->NextRunnable(/*busy=*/pass_.has_value());
    if (next >= 0) {
      TROUPE_RETURN_IF_ERROR(Run(next));
    } else if (pass_) {
      TROUPE_ASSIGN_OR_RETURN(const bool more, AdvanceBackward());
      // With collectives in flight there may be news in the mailbox.
      if (more && (setup_.simulated || in_flight_ > 0)) return State::kYielded;
      continue;
    } else {
      return cursor_->complete() ? State::kDone : State::kWaiting;
    }
    if (setup_.simulated) return State::kYielded;
  }
}

absl::Status StepRunner::Run(int id) {
  const pipeline::Action& action = cursor_->table().actions[id];
  cursor_->Start(id);
  MicroBatch* micro = pipeline::IsCollective(action.kind) ||
                              action.kind == ActionKind::kUpdateBucket
                          ? nullptr
                          : &micro_batches_[action.index];
  switch (action.kind) {
    case ActionKind::kForward:
      TROUPE_RETURN_IF_ERROR(RunForward(action.index));
      break;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInputs:
    case ActionKind::kBackwardWeights:
      BeginBackward(id);
      return absl::OkStatus();  // finished by AdvanceBackward
    case ActionKind::kSendActivation:
      host_->Send(/*forward=*/true, action.index, micro->output);
      break;
    case ActionKind::kSendGradient:
      host_->Send(/*forward=*/false, action.index, micro->input_gradient);
      micro->input_gradient = nn::Tensor();
      break;
    case ActionKind::kReduceLoss:
      return Reduce(id, GroupKind::kWorld,
                    comm::AllReduce(comm::ReduceOp::kSum, stats_));
    case ActionKind::kReduceBucket:
      return Reduce(id, GroupKind::kDp,
                    comm::AllReduce(comm::ReduceOp::kSum,
                                    arena_->BucketGrads(action.index)));
    case ActionKind::kReduceUpdateBucket:
      return Reduce(id, GroupKind::kDp, ReduceUpdateOf(action.index));
    case ActionKind::kUpdateBucket:
      TROUPE_RETURN_IF_ERROR(Update(action.index));
      break;
    case ActionKind::kRecvActivation:
    case ActionKind::kRecvGradient:
      TROUPE_CHECK(false, "a receive is finished by Deliver()");
  }
  cursor_->Finish(id);
  return absl::OkStatus();
}

absl::StatusOr<nn::Tensor> StepRunner::StageInput(int m) {
  MicroBatch& micro = micro_batches_[m];
  if (!first_stage_) {
    return std::exchange(micro.received_activation, nn::Tensor());
  }
  const nn::Tensor& loaded = batches_[m].inputs;
  if (loaded.dtype() == setup_.spec->dtype) return loaded;
  nn::Tensor converted = nn::Tensor::Empty(loaded.shape(), setup_.spec->dtype,
                                           kernels_->allocator());
  TROUPE_RETURN_IF_ERROR(kernels_->Copy(loaded, converted));
  return converted;
}

absl::Status StepRunner::RunForward(int m) {
  const std::string name = traced_ ? absl::StrCat("F", m) : "";
  Trace(TraceKind::kAction, TracePhase::kBegin, name);
  MicroBatch& micro = micro_batches_[m];
  const bool train = kind_ == StepKind::kTrain;
  nn::Tape* tape = nullptr;
  if (train) {
    micro.tape.Reset();
    tape = &micro.tape;
  }
  nn::Context ctx(*kernels_, tape);
  ctx.set_training(train);
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor input, StageInput(m));
  if (train && !first_stage_) input = micro.input = micro.tape.Watch(input);
  micro.output = (*module_)(ctx, input);
  if (last_stage_) {
    nn::Tensor target = batches_[m].targets;
    if (nn::IsFloating(target.dtype()) && ctx.ok() &&
        target.dtype() != setup_.spec->dtype) {
      target = ctx.Empty(target.shape(), setup_.spec->dtype);
      TROUPE_RETURN_IF_ERROR(kernels_->Copy(batches_[m].targets, target));
    }
    micro.output = setup_.spec->loss(ctx, micro.output, target);
  }
  if (!ctx.ok()) {
    return absl::Status(ctx.status().code(),
                        absl::StrCat("step ", step_ + 1, ", micro-batch ", m,
                                     ": ", ctx.status().message()));
  }
  Trace(TraceKind::kAction, TracePhase::kEnd, name);
  return last_stage_ ? AddLoss(m, micro.output) : absl::OkStatus();
}

absl::Status StepRunner::AddLoss(int m, const nn::Tensor& stats) {
  const double* one = stats.data<double>();
  if (kind_ == StepKind::kTrain && setup_.spec->stop_on_nan &&
      !std::isfinite(one[nn::ops::kLossSum])) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the loss of step ", step_ + 1, ", micro-batch ", m, " is ",
        one[nn::ops::kLossSum] / one[nn::ops::kLossCount],
        "; lower optimizer.lr, or set train.stop_on_nan=false to go on"));
  }
  double* all = stats_.data<double>();
  for (int i = 0; i < nn::ops::kNumLossStats; ++i) all[i] += one[i];
  return absl::OkStatus();
}

void StepRunner::BeginBackward(int id) {
  const pipeline::Action& action = cursor_->table().actions[id];
  const int m = action.index;
  Trace(TraceKind::kAction, TracePhase::kBegin, action.ToString());
  MicroBatch& micro = micro_batches_[m];
  using Mode = nn::BackwardPass::Mode;
  const Mode mode = action.kind == ActionKind::kBackward ? Mode::kWhole
                    : action.kind == ActionKind::kBackwardInputs
                        ? Mode::kInputs
                        : Mode::kWeights;
  // Only what the last micro-batch adds completes a gradient.
  counting_ = m == cursor_->table().micro_batches() - 1;
  if (counting_) {
    // A split backward's inputs add to no gradient, and weights of earlier
    // micro-batches may still come: no bucket is complete yet.
    weights_begun_ = mode != Mode::kInputs;
    if (mode == Mode::kWeights) {
      GiveWhatIsDone();
    } else {
      CountGradients(micro.tape);
    }
  }
  backward_ = id;
  pass_.emplace(micro.tape, *kernels_, static_cast<nn::GradientSink&>(*this),
                mode);
  if (mode != Mode::kWeights) {
    pass_->Seed(micro.output,
                last_stage_ ? nn::Tensor() : micro.received_gradient);
    micro.output = nn::Tensor();
    micro.received_gradient = nn::Tensor();
  }
}

void StepRunner::CountGradients(const nn::Tape& tape) {
  for (BucketCounts& counts : counts_) counts = {};
  for (const nn::Parameter* parameter : tape.parameters()) {
    BucketCounts& counts = counts_[bucket_of_[parameter->index]];
    ++counts.grads_left;
    ++counts.readers_left;
  }
  // A bucket that this micro-batch does not touch is complete already.
  GiveWhatIsDone();
}

void StepRunner::GiveWhatIsDone() {
  for (int k = 0; k < static_cast<int>(counts_.size()); ++k) GiveIfDone(k);
}

void StepRunner::GiveIfDone(int bucket) {
  const BucketCounts& counts = counts_[bucket];
  if (counts.grads_left == 0 && weights_begun_ &&
      !cursor_->Given({SignalKind::kBucketReady, bucket})) {
    arena_->ZeroUnwritten(bucket);
    cursor_->Give({SignalKind::kBucketReady, bucket});
    Trace(TraceKind::kBucketReady, TracePhase::kInstant, "bucket ready",
          bucket);
  }
  if (counts.readers_left == 0) {
    cursor_->Give({SignalKind::kBucketReleased, bucket});
  }
}

void StepRunner::GradientNeeded(nn::Parameter& parameter) {
  arena_->HoldGrads(bucket_of_[parameter.index]);
}

void StepRunner::GradientComplete(nn::Parameter& parameter) {
  if (!counting_) return;
  const int bucket = bucket_of_[parameter.index];
  if (traced_) {
    Trace(TraceKind::kGradientComplete, TracePhase::kInstant, parameter.name,
          bucket);
  }
  --counts_[bucket].grads_left;
  GiveIfDone(bucket);
}

void StepRunner::LastReaderDone(nn::Parameter& parameter) {
  if (!counting_) return;
  const int bucket = bucket_of_[parameter.index];
  --counts_[bucket].readers_left;
  GiveIfDone(bucket);
}

absl::StatusOr<bool> StepRunner::AdvanceBackward() {
  TROUPE_ASSIGN_OR_RETURN(const bool more, pass_->Next());
  if (more) return true;
  pass_.reset();
  const pipeline::Action& action = cursor_->table().actions[backward_];
  MicroBatch& micro = micro_batches_[action.index];
  if (action.kind != ActionKind::kBackwardWeights && !first_stage_) {
    TROUPE_ASSIGN_OR_RETURN(micro.input_gradient, micro.tape.InputGradOrZeros(
                                                      *kernels_, micro.input));
    micro.input = nn::Tensor();
  }
  if (action.kind != ActionKind::kBackwardInputs) micro.tape.Reset();
  if (traced_) {
    Trace(TraceKind::kAction, TracePhase::kEnd, action.ToString());
  }
  cursor_->Finish(backward_);
  return false;
}

absl::Status StepRunner::Reduce(int id, GroupKind group,
                                const comm::Collective& collective) {
  comm::Communicator* comm =
      group == GroupKind::kWorld ? setup_.world : setup_.dp;
  const pipeline::Action& action = cursor_->table().actions[id];
  if (traced_) {
    Trace(TraceKind::kCollective, TracePhase::kBegin, action.ToString(),
          action.kind == ActionKind::kReduceLoss ? -1 : action.index);
  }
  if (comm->size() == 1 && action.kind != ActionKind::kReduceUpdateBucket) {
    Reduced(id);
    return absl::OkStatus();
  }
  if (inline_) {
    TROUPE_RETURN_IF_ERROR(comm->RunInline(collective, setup_.spec->timeout));
    Reduced(id);
    return absl::OkStatus();
  }
  ++in_flight_;
  host_->Launch(id, group, collective);
  return absl::OkStatus();
}

void StepRunner::CollectiveDone(int id) {
  --in_flight_;
  Reduced(id);
}

void StepRunner::Reduced(int id) {
  const pipeline::Action& action = cursor_->table().actions[id];
  cursor_->Finish(id);
  const bool bucket = action.kind != ActionKind::kReduceLoss;
  if (action.kind == ActionKind::kReduceUpdateBucket) {
    arena_->ReleaseGrads(action.index);
  }
  cursor_->Give(bucket
                    ? pipeline::Signal{SignalKind::kBucketReduced, action.index}
                    : pipeline::Signal{SignalKind::kLossReduced, 0});
  if (traced_) {
    Trace(TraceKind::kCollective, TracePhase::kEnd, action.ToString(),
          bucket ? action.index : -1);
  }
}

nn::StepScalars StepRunner::Scalars() const {
  nn::StepScalars scalars;
  scalars.step = step_;
  scalars.divisor = stats_.data<double>()[nn::ops::kLossCount];
  return scalars;
}

comm::Collective StepRunner::ReduceUpdateOf(int bucket) {
  updates_[bucket]->set_scalars(Scalars());
  return comm::ReduceUpdate(comm::ReduceOp::kSum, arena_->BucketGrads(bucket),
                            updates_[bucket]);
}

absl::Status StepRunner::Update(int bucket) {
  const std::string name = traced_ ? absl::StrCat("UP", bucket) : "";
  Trace(TraceKind::kUpdate, TracePhase::kBegin, name, bucket);
  TROUPE_RETURN_IF_ERROR(
      optimizer_->Update(*kernels_, Scalars(), *arena_, bucket));
  arena_->ReleaseGrads(bucket);
  Trace(TraceKind::kUpdate, TracePhase::kEnd, name, bucket);
  return absl::OkStatus();
}

void StepRunner::Deliver(const Transfer& transfer) {
  if (transfer.step != step_ || transfer.kind != kind_ || cursor_->complete()) {
    early_.push_back(transfer);
    return;
  }
  MicroBatch& micro = micro_batches_[transfer.micro_batch];
  (transfer.forward ? micro.received_activation : micro.received_gradient) =
      transfer.tensor.Detached();
  cursor_->Finish(cursor_->table().Find(transfer.forward
                                            ? ActionKind::kRecvActivation
                                            : ActionKind::kRecvGradient,
                                        transfer.micro_batch));
}

LossBits StepRunner::loss() const {
  const double* stats = stats_.data<double>();
  return {Bits(stats[nn::ops::kLossSum]), Bits(stats[nn::ops::kLossCount]),
          Bits(stats[nn::ops::kLossCorrect])};
}

void StepRunner::Trace(TraceKind kind, TracePhase phase, absl::string_view name,
                       int bucket) {
  if (!traced_) return;
  TraceEvent event;
  event.rank = setup_.rank;
  event.track =
      kind == TraceKind::kCollective ? TraceTrack::kComm : TraceTrack::kCompute;
  event.kind = kind;
  event.phase = phase;
  event.step = step_;
  event.bucket = bucket;
  event.name = std::string(name);
  setup_.spec->trace->Record(event);
}

}  // namespace troupe::actors
