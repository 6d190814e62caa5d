#include "actors/chunks/chunk.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/chunks/user_loss.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

// State of one micro-batch between its forward and its backward.
struct Chunk::MicroBatch {
  nn::Tape tape;
  nn::TensorList received_activations, received_gradients;
  nn::TensorList inputs;   // inputs from another chunk, on the tape; no memory
  nn::TensorList outputs;  // on the last chunk: the loss
  nn::TensorList input_gradients;
};

namespace {

// Returns a handle to `tensor` on the tape, without its memory.
nn::Tensor WithoutMemory(const nn::Tensor& tensor) {
  nn::Tensor meta =
      nn::Tensor::Meta(tensor.shape(), tensor.dtype(), tensor.device());
  meta.set_tape_ref(tensor.tape_ref());
  return meta;
}

absl::StatusOr<nn::TensorList> Received(const nn::TensorList& tensors,
                                        int wanted) {
  if (static_cast<int>(tensors.size()) != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensors.size(), " tensor(s) where the plan has ", wanted));
  }
  nn::TensorList detached;
  for (const nn::Tensor& tensor : tensors) {
    detached.push_back(tensor.Detached());
  }
  return detached;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Chunk>> Chunk::Create(const Setup& setup,
                                                     Listener* listener) {
  std::unique_ptr<Chunk> chunk(new Chunk(setup));
  TROUPE_RETURN_IF_ERROR(chunk->Init(listener));
  return chunk;
}

Chunk::Chunk(const Setup& setup)
    : setup_(setup),
      first_(setup.stage == 0),
      last_(setup.stage + 1 == static_cast<int>(setup.plan->stages.size())),
      kernels_(*setup.kernels),
      batches_(kernels_, setup.plan->data_dtype) {}

Chunk::~Chunk() = default;

absl::Status Chunk::Init(Listener* listener) {
  const JobSpec& spec = *setup_.spec;
  TROUPE_ASSIGN_OR_RETURN(
      module_, BuildChunk(spec, *setup_.plan, setup_.stage, setup_.rank));
  ChunkParameters::Setup parameters;
  parameters.plan = setup_.plan;
  parameters.stage = setup_.stage;
  parameters.rank = setup_.rank;
  parameters.kernels = setup_.kernels;
  parameters.seed = spec.seed;
  parameters.weights = spec.init.weights.get();
  if (spec.optimizer) {
    parameters.make_optimizer = [&spec] { return MakeOptimizer(spec); };
  }
  // A loop's program attaches its optimizer later, and may read gradients.
  parameters.keeps_grads = !spec.optimizer;
  parameters.hook = &spec.hook;
  parameters.allow_missing = spec.checkpoint.allow_missing;
  parameters.start_threads = setup_.start_threads;
  parameters.peer_memory = setup_.peer_memory;
  parameters.scalars = setup_.scalars;
  parameters.update_queue = setup_.update_queue;
  TROUPE_ASSIGN_OR_RETURN(parameters_,
                          ChunkParameters::Create(parameters, *module_));
  ledger_.emplace(
      GradientLedger::Setup{setup_.chunk, parameters_.get(), setup_.trace,
                            setup_.gated, /*uses=*/nullptr, setup_.axes},
      listener);
  micro_batches_ = std::vector<MicroBatch>(setup_.plan->micro_batches);
  return absl::OkStatus();
}

void Chunk::BeginStep(StepKind kind, std::int64_t step, StepBatches batches) {
  kind_ = kind;
  step_ = step;
  batches_.Begin(std::move(batches));
  draws_ = nn::Tensor();
  // A step that was aborted may have left a backward.
  backward_.reset();
  ledger_->BeginStep();
  if (kind == StepKind::kTrain) parameters_->BeginStep();
}

absl::StatusOr<nn::TensorList> Chunk::Inputs(nn::Context& ctx, int m) {
  MicroBatch& micro = micro_batches_[m];
  if (first_) {
    TROUPE_ASSIGN_OR_RETURN(const nn::Tensor input, batches_.Inputs(m));
    return nn::TensorList{input};
  }
  nn::TensorList received = std::move(micro.received_activations);
  micro.received_activations.clear();
  micro.inputs.clear();
  if (kind_ == StepKind::kTrain) {
    for (nn::Tensor& tensor : received) {
      tensor = micro.tape.Watch(tensor);
      micro.inputs.push_back(WithoutMemory(tensor));
    }
  }
  const pipeline::StagePlan& stage = setup_.plan->stages[setup_.stage];
  const std::size_t inputs = 1 + stage.more_inputs.size();
  for (std::size_t i = 0; i < stage.skips.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(ctx.stashed().Add(stage.skips[i].name, /*module=*/"",
                                             received[inputs + i]));
  }
  received.resize(inputs);
  return received;
}

nn::TensorList Chunk::RunModule(nn::Context& ctx,
                                const nn::TensorList& inputs) {
  const bool several =
      inputs.size() > 1 ||
      (!last_ && !setup_.plan->stages[setup_.stage + 1].more_inputs.empty());
  if (!several) return {(*module_)(ctx, inputs[0])};
  nn::TensorList outputs = module_->CallMany(ctx, inputs);
  if (last_ && ctx.ok() && outputs.size() != 1) {
    ctx.Fail(absl::InvalidArgumentError(
        absl::StrCat("the last module gives ", outputs.size(),
                     " tensors; return one from the Forward() of the model")));
  }
  return outputs;
}

absl::Status Chunk::AddSkips(nn::Context& ctx, nn::TensorList& outputs) const {
  absl::Span<const pipeline::SkipPlan> planned;
  if (!last_) planned = setup_.plan->stages[setup_.stage + 1].skips;
  const std::vector<nn::StashedTensor>& waiting = ctx.stashed().waiting();
  const auto name = [](const auto& skips, std::size_t i) {
    return i < skips.size() ? absl::StrCat("\"", skips[i].name, "\"")
                            : "no further one";
  };
  for (std::size_t i = 0; i < std::max(waiting.size(), planned.size()); ++i) {
    if (name(waiting, i) == name(planned, i)) {
      outputs.push_back(waiting[i].tensor);
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "stage ", setup_.stage, " leaves as skip connection ", i, " ",
        name(waiting, i), " where the plan, made of shapes alone, has ",
        name(planned, i), "; what is stashed must not depend on values"));
  }
  if (!last_ && static_cast<int>(outputs.size()) != sent_tensors()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stage ", setup_.stage, " gives ", outputs.size(),
        " tensors where the plan, made of shapes alone, has ", sent_tensors()));
  }
  return absl::OkStatus();
}

nn::Tensor Chunk::Loss(nn::Context& ctx, int m, nn::Tensor output) {
  const absl::StatusOr<nn::Tensor> target = batches_.Targets(m);
  if (!target.ok()) return ctx.Fail(target.status());
  return LossOf(ctx, *setup_.spec, *module_, std::move(output), *target);
}

absl::Status Chunk::InStep(int m, const absl::Status& status) const {
  if (status.ok()) return status;
  return base::WithMessage(
      status, absl::StrCat("step ", step_ + 1, ", micro-batch ", m, ": ",
                           status.message()));
}

void Chunk::AddTo(MemoryHolders& holders) const {
  for (int i = 0; i < parameters_->num_arenas(); ++i) {
    holders.AddArena(parameters_->arena(i));
  }
}

absl::Status Chunk::Forward(int m) { return InStep(m, RunForward(m)); }

absl::Status Chunk::RunForward(int m) {
  MicroBatch& micro = micro_batches_[m];
  const bool train = kind_ == StepKind::kTrain;
  if (train) micro.tape.Reset();
  nn::Context ctx(kernels_, train ? &micro.tape : nullptr);
  ctx.set_training(train);
  ctx.set_random({setup_.spec->seed, step_, batches_.position(m)});
  if (draws_.defined()) {
    ctx.set_random_place(draws_.FlatView(std::int64_t{2} * m, {2}));
  }
  ctx.set_collectives(setup_.axes);
  if (kind_ == StepKind::kPredict && !batches_.texts(m).empty()) {
    TROUPE_RETURN_IF_ERROR(cache_.Begin(batches_.texts(m)));
    ctx.set_kv_cache(&cache_);
  }
  if (ledger_->IsGate(train)) ctx.set_gate(&*ledger_);
  if (HasOwnStep(*setup_.spec, kind_)) {
    TROUPE_ASSIGN_OR_RETURN(const data::Batch batch, batches_.Whole(m));
    micro.outputs = {LossByStep(ctx, *setup_.spec, *module_, batch)};
    TROUPE_RETURN_IF_ERROR(ctx.status());
    return AddSkips(ctx, micro.outputs);
  }
  TROUPE_ASSIGN_OR_RETURN(const nn::TensorList inputs, Inputs(ctx, m));
  micro.outputs = RunModule(ctx, inputs);
  const bool has_loss = last_ && kind_ != StepKind::kPredict;
  if (has_loss && ctx.ok()) {
    nn::Tensor output = std::move(micro.outputs[0]);
    micro.outputs = {Loss(ctx, m, std::move(output))};
  }
  TROUPE_RETURN_IF_ERROR(ctx.status());
  return AddSkips(ctx, micro.outputs);
}

const nn::Tensor& Chunk::output(int m) const {
  return micro_batches_[m].outputs[0];
}

nn::TensorList Chunk::TakeOutputs(int m) {
  nn::TensorList taken = micro_batches_[m].outputs;
  for (nn::Tensor& output : micro_batches_[m].outputs) {
    output = WithoutMemory(output);
  }
  return taken;
}

int Chunk::sent_tensors() const {
  return last_ ? 0 : setup_.plan->stages[setup_.stage + 1].received_tensors();
}

absl::Status Chunk::ReceiveActivations(int m, const nn::TensorList& tensors) {
  const pipeline::StagePlan& stage = setup_.plan->stages[setup_.stage];
  TROUPE_ASSIGN_OR_RETURN(micro_batches_[m].received_activations,
                          Received(tensors, stage.received_tensors()));
  return absl::OkStatus();
}

absl::Status Chunk::ReceiveGradients(int m, const nn::TensorList& tensors) {
  const int wanted = kind_ == StepKind::kTrain ? sent_tensors() : 0;
  TROUPE_ASSIGN_OR_RETURN(micro_batches_[m].received_gradients,
                          Received(tensors, wanted));
  return absl::OkStatus();
}

nn::TensorList Chunk::TakeInputGradients(int m) {
  return std::exchange(micro_batches_[m].input_gradients, {});
}

void Chunk::BeginBackward(int m, Mode mode) {
  MicroBatch& micro = micro_batches_[m];
  ledger_->BeginPass(micro.tape, mode,
                     /*last=*/m + 1 == batches_.size(), m);
  backward_.emplace(Backward{
      nn::BackwardPass(micro.tape, kernels_, *ledger_, mode), m, mode});
  if (mode == Mode::kWeights) return;
  if (last_ && setup_.loss_seed.defined()) {
    backward_->pass.Seed(micro.outputs[0], setup_.loss_seed);
  } else if (last_) {
    backward_->pass.SeedLoss(micro.outputs[0], setup_.plan->loss_scale);
  } else {
    for (std::size_t i = 0; i < micro.outputs.size(); ++i) {
      const nn::Tensor& gradient = micro.received_gradients[i];
      // The loss may not depend on an output beside the first.
      if (i == 0 || gradient.defined()) {
        backward_->pass.Seed(micro.outputs[i], gradient);
      }
    }
  }
  micro.outputs.clear();
  micro.received_gradients.clear();
}

absl::StatusOr<bool> Chunk::NextPiece() {
  const int m = backward_->micro_batch;
  absl::StatusOr<bool> more = RunPiece();
  if (more.ok()) return more;
  return InStep(m, more.status());
}

absl::StatusOr<bool> Chunk::RunPiece() {
  TROUPE_ASSIGN_OR_RETURN(const bool more, backward_->pass.Next());
  TROUPE_RETURN_IF_ERROR(ledger_->status());
  if (more) return true;
  const Mode mode = backward_->mode;
  MicroBatch& micro = micro_batches_[backward_->micro_batch];
  backward_.reset();
  if (mode != Mode::kWeights && !first_) {
    TROUPE_ASSIGN_OR_RETURN(
        const nn::Tensor first,
        micro.tape.InputGradOrZeros(kernels_, micro.inputs[0]));
    micro.input_gradients = {first};
    for (std::size_t i = 1; i < micro.inputs.size(); ++i) {
      micro.input_gradients.push_back(micro.tape.InputGrad(micro.inputs[i]));
    }
    micro.inputs.clear();
  }
  if (mode != Mode::kInputs) micro.tape.Reset();
  return false;
}

}  // namespace troupe::actors
