#include "nn/autograd/tape.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nn/autograd/segment.h"

namespace troupe::nn {
namespace {

// Returns a number that distinguishes tapes. It does not affect results, so a
// process-wide counter is fine.
std::uint32_t NextSerial() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t serial = next.fetch_add(1, std::memory_order_relaxed);
  return serial == 0 ? next.fetch_add(1, std::memory_order_relaxed) : serial;
}

}  // namespace

absl::Status Node::BackwardInputOnto(Kernels&, const Tensor&, const Tensor&,
                                     Tensor&) {
  return absl::UnimplementedError(
      absl::StrCat(name(), " computes gradients by themselves"));
}

absl::Status Node::BackwardWeights(Kernels&, const Tensor&, bool,
                                   absl::Span<WeightGrad>) {
  return absl::OkStatus();
}

absl::Status Node::BackwardWeightRows(Kernels&, const Tensor&, std::int64_t,
                                      Tensor&) {
  return absl::UnimplementedError(
      absl::StrCat(name(), " computes whole gradients"));
}

absl::Status GradientSink::TakeRows(Parameter& parameter, std::int64_t,
                                    const Tensor&) {
  return absl::UnimplementedError(absl::StrCat(
      "the gradient of ", parameter.name, " is not taken by rows"));
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
    ++values_[value].uses;
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

Tape::Reach Tape::ReachOf(const Tensor& output) const {
  Reach reach;
  reach.serial_ = serial_;
  reach.values_.resize(values_.size());
  const std::int32_t from = ValueOf(output);
  if (from < 0) return reach;
  reach.values_[from] = true;
  for (auto step = nodes_.rbegin(); step != nodes_.rend(); ++step) {
    if (!reach.values_[step->output]) continue;
    for (const std::int32_t input : step->inputs) {
      if (input >= 0) reach.values_[input] = true;
    }
  }
  return reach;
}

std::vector<Parameter*> Tape::parameters() const {
  std::vector<Parameter*> used;
  for (const Value& value : values_) {
    // A parameter that feeds no op gets no gradient; nothing may wait for it.
    if (value.parameter && value.readers_left > 0) {
      used.push_back(value.parameter);
    }
  }
  return used;
}

}  // namespace troupe::nn
