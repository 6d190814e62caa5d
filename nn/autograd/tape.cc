#include "nn/autograd/tape.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nn/autograd/segment.h"

namespace troupe::nn {
namespace {

// Tells the tensors of one tape from those of another; not a source of
// behaviour, so a process-wide counter is fine.
std::uint32_t NextSerial() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t serial = next.fetch_add(1, std::memory_order_relaxed);
  return serial == 0 ? next.fetch_add(1, std::memory_order_relaxed) : serial;
}

absl::Status InOp(const Node& node, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("backward of ", node.name(),
                                                  ": ", status.message()));
}

}  // namespace

absl::Status Node::BackwardWeights(Kernels&, const Tensor&, bool,
                                   absl::Span<WeightGrad>) {
  return absl::OkStatus();
}

Tape::Step::Step() = default;
Tape::Step::Step(Step&&) = default;
Tape::Step::~Step() = default;

Tape::Tape() : serial_(NextSerial()) {}
Tape::~Tape() = default;

void Tape::Reset() {
  serial_ = NextSerial();
  nodes_.clear();
  values_.clear();
}

std::int32_t Tape::NewValue(const Shape& shape) {
  values_.emplace_back();
  values_.back().shape = shape;
  return static_cast<std::int32_t>(values_.size()) - 1;
}

Tensor Tape::Watch(const Tensor& input) {
  if (!IsFloating(input.dtype())) return input.Detached();
  Tensor watched = input;
  watched.set_tape_ref({serial_, NewValue(input.shape())});
  values_.back().watched = true;
  return watched;
}

Tensor Tape::Leaf(Parameter& parameter) {
  Tensor leaf = parameter.value;
  if (!parameter.requires_grad) return leaf;
  if (parameter.leaf.tape != serial_) {
    parameter.leaf = {serial_, NewValue(leaf.shape())};
    values_.back().parameter = &parameter;
  }
  leaf.set_tape_ref(parameter.leaf);
  return leaf;
}

bool Tape::Tracks(const Tensor& input) const { return ValueOf(input) >= 0; }

bool Tape::Tracks(absl::Span<const Tensor> inputs) const {
  for (const Tensor& input : inputs) {
    if (Tracks(input)) return true;
  }
  return false;
}

absl::Status Tape::CheckInputs(const char* op,
                               absl::Span<const Tensor> inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::int32_t value = ValueOf(inputs[i]);
    if (value < 0 || values_[value].shape == inputs[i].shape()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        op, ": input ", i, " of ", inputs[i].shape().ToString(),
        " is a view of a tracked ", values_[value].shape.ToString(),
        "; a view of a tracked tensor has no gradient; use ops::Flatten or "
        "another op, or Detached() for a constant"));
  }
  return absl::OkStatus();
}

Tensor Tape::Record(std::unique_ptr<Node> node, absl::Span<const Tensor> inputs,
                    int num_weights, Tensor output) {
  if (!Tracks(inputs)) return output.Detached();
  nodes_.emplace_back();
  Step& step = nodes_.back();
  step.node = std::move(node);
  step.num_weights = num_weights;
  const int first_weight = static_cast<int>(inputs.size()) - num_weights;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    const std::int32_t value = ValueOf(inputs[i]);
    step.inputs.push_back(value);
    if (i >= first_weight && value >= 0 && !values_[value].parameter) {
      step.weights_are_leaves = false;
    }
    if (value < 0) continue;
    ++values_[value].uses_left;
    ++values_[value].readers_left;
  }
  if (!step.weights_are_leaves) {
    for (int i = first_weight; i < static_cast<int>(inputs.size()); ++i) {
      step.weight_shapes.push_back(inputs[i].shape());
    }
  }
  step.output = NewValue(output.shape());
  output.set_tape_ref({serial_, step.output});
  return output;
}

Tensor Tape::InputGrad(const Tensor& watched) const {
  const std::int32_t value = ValueOf(watched);
  return value < 0 ? Tensor() : values_[value].grad;
}

absl::StatusOr<Tensor> Tape::InputGradOrZeros(Kernels& kernels,
                                              const Tensor& watched) const {
  Tensor grad = InputGrad(watched);
  if (grad.defined()) return grad;
  TROUPE_ASSIGN_OR_RETURN(grad, Tensor::Create(watched.shape(), watched.dtype(),
                                               kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.Fill(0.0, grad));
  return grad;
}

bool Tape::IsLoss(std::int32_t value) const {
  for (auto step = nodes_.rbegin(); step != nodes_.rend(); ++step) {
    if (step->output == value) return step->node && step->node->is_loss();
  }
  return false;
}

std::vector<Parameter*> Tape::parameters() const {
  std::vector<Parameter*> used;
  for (const Value& value : values_) {
    // One that feeds no op gets no gradient; nobody may wait for it.
    if (value.parameter && value.readers_left > 0) {
      used.push_back(value.parameter);
    }
  }
  return used;
}

BackwardPass::BackwardPass(Tape& tape, Kernels& kernels, GradientSink& sink,
                           Mode mode)
    : tape_(tape),
      kernels_(kernels),
      sink_(sink),
      mode_(mode),
      next_(tape.num_nodes() - 1),
      phase_(mode == Mode::kInputs ? Phase::kInputs : Phase::kWeights) {}

void BackwardPass::Seed(const Tensor& output, const Tensor& dy) {
  const std::int32_t value = tape_.ValueOf(output);
  if (value < 0) return;  // nothing before it is trainable
  const Shape& want = tape_.values_[value].shape;
  for (const Tensor& given : {output, dy}) {
    if (!given.defined() || given.shape() == want) continue;
    seeded_ = absl::InvalidArgumentError(
        absl::StrCat("backward begins at an output of ", want.ToString(),
                     ", got ", given.shape().ToString()));
    return;
  }
  if (!dy.defined() && !tape_.IsLoss(value)) {
    seeded_ = absl::InvalidArgumentError(absl::StrCat(
        "backward begins at a loss, or at an output with its gradient; ",
        want.ToString(), " is no loss and has none"));
    return;
  }
  tape_.values_[value].grad =
      dy.defined() ? dy.Detached()
                   : Tensor::Meta(want, output.dtype(), output.device());
}

void BackwardPass::SeedLoss(const Tensor& loss, double scale) {
  Tensor dy;
  if (scale != 1 && tape_.Tracks(loss)) {
    absl::StatusOr<Tensor> seed =
        Tensor::Create(loss.shape(), loss.dtype(), kernels_.allocator());
    seeded_ = seed.ok() ? kernels_.Fill(scale, *seed) : seed.status();
    if (!seeded_.ok()) return;
    dy = *std::move(seed);
  }
  Seed(loss, dy);
}

bool BackwardPass::Enters(const Tape::Step& step) const {
  return mode_ == Mode::kWeights ? step.dy.defined()
                                 : tape_.values_[step.output].grad.defined();
}

absl::StatusOr<bool> BackwardPass::Next() {
  TROUPE_RETURN_IF_ERROR(seeded_);
  while (next_ >= 0) {
    Tape::Step& step = tape_.nodes_[next_];
    if (step.segment) {
      TROUPE_ASSIGN_OR_RETURN(const bool ran, AdvanceSegment(step));
      if (ran) return true;
      continue;
    }
    const bool enters = Enters(step);
    if (phase_ == Phase::kWeights) {
      const bool runs =
          enters && step.num_weights > 0 && step.weights_are_leaves;
      if (runs) TROUPE_RETURN_IF_ERROR(RunWeights(step));
      UsedWeights(step);
      if (mode_ == Mode::kWhole) {
        phase_ = Phase::kInputs;
      } else {
        step.dy = Tensor();
        step.node.reset();
        --next_;
      }
      if (runs) return true;
      continue;
    }
    if (enters) TROUPE_RETURN_IF_ERROR(RunInputs(step));
    UsedInputs(step);
    Tensor& grad = tape_.values_[step.output].grad;
    if (mode_ == Mode::kWhole) {
      step.node.reset();  // frees the activations it saved
      phase_ = Phase::kWeights;
    } else {
      step.dy = grad;
    }
    grad = Tensor();
    --next_;
    if (enters) return true;
  }
  return false;
}

absl::Status BackwardPass::NeedGradient(Parameter& parameter) {
  if (parameter.grad.defined()) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(sink_.GradientNeeded(parameter));
  if (parameter.grad.defined()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the gradient of ", parameter.name,
                   " has no memory: hold its bucket, or keep all gradients "
                   "(nn/arena/parameter_arena.h)"));
}

absl::Status BackwardPass::RunWeights(Tape::Step& step) {
  const int first = static_cast<int>(step.inputs.size()) - step.num_weights;
  absl::InlinedVector<WeightGrad, 2> grads(step.num_weights);
  bool any = false, any_written = false, all_written = true, apart = false;
  for (int i = 0; i < step.num_weights; ++i) {
    const std::int32_t value = step.inputs[first + i];
    if (value < 0) continue;
    Parameter& parameter = *tape_.values_[value].parameter;
    const absl::Status status = NeedGradient(parameter);
    if (!status.ok()) return InOp(*step.node, status);
    grads[i].grad = parameter.grad;
    any = true;
    apart |= parameter.grad.dtype() != parameter.value.dtype();
    any_written |= parameter.grad_written;
    all_written &= parameter.grad_written;
  }
  if (!any) return absl::OkStatus();
  const Tensor& dy =
      mode_ == Mode::kWeights ? step.dy : tape_.values_[step.output].grad;
  if (apart) return RunWeightsApart(step, dy, absl::MakeSpan(grads));
  for (int i = 0; i < step.num_weights; ++i) {
    const std::int32_t value = step.inputs[first + i];
    if (value < 0) continue;
    Parameter& parameter = *tape_.values_[value].parameter;
    // A kernel adds to all of its gradients or to none.
    if (any_written && !all_written && !parameter.grad_written) {
      TROUPE_RETURN_IF_ERROR(kernels_.Fill(0.0, parameter.grad));
    }
    parameter.grad_written = true;
  }
  absl::Status status = step.node->BackwardWeights(
      kernels_, dy, /*accumulate=*/any_written, absl::MakeSpan(grads));
  return status.ok() ? status : InOp(*step.node, status);
}

// Gradients of another dtype than the parameters' are computed in the latter,
// beside them, and added.
absl::Status BackwardPass::RunWeightsApart(Tape::Step& step, const Tensor& dy,
                                           absl::Span<WeightGrad> grads) {
  const int first = static_cast<int>(step.inputs.size()) - step.num_weights;
  const auto parameter_of = [&](int i) {
    const std::int32_t value = step.inputs[first + i];
    return value < 0 ? nullptr : tape_.values_[value].parameter;
  };
  for (int i = 0; i < step.num_weights; ++i) {
    if (const Parameter* parameter = parameter_of(i)) {
      absl::StatusOr<Tensor> grad = Tensor::Create(
          parameter->shape, parameter->value.dtype(), kernels_.allocator());
      if (!grad.ok()) return InOp(*step.node, grad.status());
      grads[i].grad = *std::move(grad);
    }
  }
  const absl::Status status =
      step.node->BackwardWeights(kernels_, dy, /*accumulate=*/false, grads);
  if (!status.ok()) return InOp(*step.node, status);
  for (int i = 0; i < step.num_weights; ++i) {
    Parameter* const parameter = parameter_of(i);
    if (parameter) TROUPE_RETURN_IF_ERROR(AddTo(*parameter, grads[i].grad));
  }
  return absl::OkStatus();
}

// Weights that were themselves computed (a normalised weight, say): their
// gradients flow on, so they belong to the pass over inputs.
absl::Status BackwardPass::RunComputedWeights(Tape::Step& step) {
  const int first = static_cast<int>(step.inputs.size()) - step.num_weights;
  const Tensor& dy = tape_.values_[step.output].grad;
  absl::InlinedVector<WeightGrad, 2> grads(step.num_weights);
  for (int i = 0; i < step.num_weights; ++i) {
    if (step.inputs[first + i] < 0) continue;
    absl::StatusOr<Tensor> grad =
        Tensor::Create(step.weight_shapes[i], dy.dtype(), kernels_.allocator());
    if (!grad.ok()) return InOp(*step.node, grad.status());
    grads[i].grad = *std::move(grad);
  }
  absl::Status status = step.node->BackwardWeights(
      kernels_, dy, /*accumulate=*/false, absl::MakeSpan(grads));
  if (!status.ok()) return InOp(*step.node, status);
  for (int i = 0; i < step.num_weights; ++i) {
    // A node may have made memory of its own for a constant's.
    if (step.inputs[first + i] < 0) continue;
    status = Give(step.inputs[first + i], grads[i].grad);
    if (!status.ok()) return InOp(*step.node, status);
  }
  return absl::OkStatus();
}

absl::Status BackwardPass::RunInputs(Tape::Step& step) {
  if (!step.weights_are_leaves) {
    TROUPE_RETURN_IF_ERROR(RunComputedWeights(step));
  }
  const int count = static_cast<int>(step.inputs.size()) - step.num_weights;
  absl::InlinedVector<Tensor, 4> dx(count);
  absl::InlinedVector<bool, 4> wanted(count);
  bool any = false;
  for (int i = 0; i < count; ++i) any |= wanted[i] = step.inputs[i] >= 0;
  if (!any) return absl::OkStatus();
  absl::Status status = step.node->BackwardInputs(
      kernels_, tape_.values_[step.output].grad, wanted, absl::MakeSpan(dx));
  if (!status.ok()) return InOp(*step.node, status);
  for (int i = 0; i < count; ++i) {
    if (!wanted[i]) continue;
    status = Give(step.inputs[i], dx[i]);
    if (!status.ok()) return InOp(*step.node, status);
  }
  return absl::OkStatus();
}

absl::Status BackwardPass::Give(std::int32_t id, const Tensor& grad) {
  TROUPE_CHECK(id >= 0, "a gradient belongs to a tracked value");
  Tape::Value& value = tape_.values_[id];
  if (value.parameter) {
    TROUPE_RETURN_IF_ERROR(NeedGradient(*value.parameter));
    return AddTo(*value.parameter, grad);
  }
  if (!value.grad.defined()) {
    value.grad = grad.Detached();
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const Tensor first, WithMemory(value.grad));
  TROUPE_ASSIGN_OR_RETURN(const Tensor second, WithMemory(grad));
  TROUPE_ASSIGN_OR_RETURN(Tensor sum, Tensor::Create(grad.shape(), grad.dtype(),
                                                     kernels_.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels_.Add(first, second, sum));
  value.grad = sum;
  return absl::OkStatus();
}

absl::Status BackwardPass::AddTo(Parameter& parameter, const Tensor& grad) {
  const bool add = std::exchange(parameter.grad_written, true);
  if (!add) return kernels_.Copy(grad, parameter.grad);
  if (grad.dtype() == parameter.grad.dtype()) {
    return kernels_.Add(parameter.grad, grad, parameter.grad);
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor converted,
                          Tensor::Create(grad.shape(), parameter.grad.dtype(),
                                         kernels_.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels_.Copy(grad, converted));
  return kernels_.Add(parameter.grad, converted, parameter.grad);
}

absl::StatusOr<Tensor> BackwardPass::WithMemory(const Tensor& grad) {
  if (!grad.is_meta()) return grad;
  TROUPE_ASSIGN_OR_RETURN(Tensor one, Tensor::Create(grad.shape(), grad.dtype(),
                                                     kernels_.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels_.Fill(1.0, one));
  return one;
}

void BackwardPass::UsedWeights(Tape::Step& step) {
  if (!step.weights_are_leaves) return;
  const int first = static_cast<int>(step.inputs.size()) - step.num_weights;
  for (int i = first; i < static_cast<int>(step.inputs.size()); ++i) {
    FinishUse(step.inputs[i]);
  }
}

// The pass over inputs is the last to read the weights (they are factors of
// the input gradient), whether it ran or had nothing to do.
void BackwardPass::UsedInputs(Tape::Step& step) {
  const int first = static_cast<int>(step.inputs.size()) - step.num_weights;
  for (int i = 0; i < static_cast<int>(step.inputs.size()); ++i) {
    if (i < first || !step.weights_are_leaves) FinishUse(step.inputs[i]);
    FinishRead(step.inputs[i]);
  }
}

void BackwardPass::FinishUse(std::int32_t id) {
  if (id < 0) return;
  Tape::Value& value = tape_.values_[id];
  if (--value.uses_left == 0 && value.parameter) {
    sink_.GradientComplete(*value.parameter);
  }
}

void BackwardPass::FinishRead(std::int32_t id) {
  if (id < 0) return;
  Tape::Value& value = tape_.values_[id];
  if (--value.readers_left == 0 && value.parameter) {
    sink_.LastReaderDone(*value.parameter);
  }
}

}  // namespace troupe::nn
