#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "nn/autograd/segment.h"
#include "nn/autograd/tape.h"

namespace troupe::nn {
namespace {

absl::Status InOp(const Node& node, const absl::Status& status) {
  return base::WithMessage(status, absl::StrCat("backward of ", node.name(),
                                                ": ", status.message()));
}

// Whether the pass over weights runs a piece for a step of a tape. For other
// steps it needs neither their saved tensors nor their gradient.
template <typename Step>
bool HasWeightPiece(const Step& step) {
  return step.num_weights > 0 && step.weights_are_leaves;
}

// Tells the sink of the parameters among the first `count` inputs of a step.
template <typename Values, typename Step>
absl::Status NeedValues(GradientSink& sink, const Values& values,
                        const Step& step, int count) {
  for (int i = 0; i < count; ++i) {
    const std::int32_t id = step.inputs[i];
    if (id < 0 || values[id].parameter == nullptr) continue;
    TROUPE_RETURN_IF_ERROR(sink.ValueNeeded(*values[id].parameter));
  }
  return absl::OkStatus();
}

}  // namespace

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
        want.ToString(), " is no loss; give a gradient with it"));
    return;
  }
  const Tensor seed = dy.defined()
                          ? dy.Detached()
                          : Tensor::Meta(want, output.dtype(), output.device());
  if (tape_.values_[value].grad.defined()) {
    seeded_.Update(Give(value, seed));
  } else {
    tape_.values_[value].grad = seed;
  }
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
  const absl::Cleanup ended = [this] { tape_.running_ = -1; };
  while (next_ >= 0) {
    tape_.running_ = next_;
    Tape::Step& step = tape_.nodes_[next_];
    if (step.segment) {
      TROUPE_ASSIGN_OR_RETURN(const bool ran, AdvanceSegment(step));
      if (ran) return true;
      continue;
    }
    const bool enters = Enters(step);
    if (phase_ == Phase::kWeights && enters && GoesByRows(step)) {
      phase_ = Phase::kRows;
      TROUPE_RETURN_IF_ERROR(RunInputs(step));
      return true;
    }
    if (phase_ == Phase::kRows) {
      TROUPE_RETURN_IF_ERROR(RunRows(step));
      UsedWeights(step);
      EndNode(step);
      return true;
    }
    if (phase_ == Phase::kWeights) {
      const bool runs = enters && HasWeightPiece(step);
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
    EndNode(step);
    if (enters) return true;
  }
  return false;
}

// Called after the input gradient; in kWhole this is the node's last piece.
void BackwardPass::EndNode(Tape::Step& step) {
  UsedInputs(step);
  Tensor& grad = tape_.values_[step.output].grad;
  if (mode_ == Mode::kWhole) phase_ = Phase::kWeights;
  if (mode_ == Mode::kInputs && HasWeightPiece(step)) {
    step.dy = grad;
  } else {
    step.node.reset();  // frees the activations it saved
  }
  grad = Tensor();
  --next_;
}

// Whether the first weight's gradient is all that this node computes of it, and
// the sink takes it by rows.
bool BackwardPass::GoesByRows(const Tape::Step& step) const {
  if (mode_ != Mode::kWhole || step.num_weights == 0 ||
      !step.weights_are_leaves) {
    return false;
  }
  const std::int32_t id =
      step.inputs[static_cast<int>(step.inputs.size()) - step.num_weights];
  if (id < 0) return false;
  const Tape::Value& value = tape_.values_[id];
  return value.uses == 1 && value.readers_left == 1 &&
         !value.parameter->grad_written &&
         step.node->WeightRows(kernels_) > 0 &&
         sink_.TakesRows(*value.parameter);
}

absl::Status BackwardPass::RunRows(Tape::Step& step) {
  TROUPE_RETURN_IF_ERROR(RunWeights(step, /*begin=*/1));
  const int first = static_cast<int>(step.inputs.size()) - step.num_weights;
  Parameter& parameter = *tape_.values_[step.inputs[first]].parameter;
  const Tensor& dy = tape_.values_[step.output].grad;
  const std::int64_t rows = parameter.shape[0];
  const std::int64_t at_a_time = step.node->WeightRows(kernels_);
  Shape shape = parameter.shape;
  shape.set(0, std::min(2 * at_a_time - 1, rows));  // size of the last part
  const absl::StatusOr<Tensor> part =
      Tensor::Create(shape, parameter.value.dtype(), kernels_.allocator());
  if (!part.ok()) return InOp(*step.node, part.status());
  for (std::int64_t begin = 0, end = 0; begin < rows; begin = end) {
    // The rest may have too few rows to have the bits of the whole.
    end = rows - begin < 2 * at_a_time ? rows : begin + at_a_time;
    Tensor grads = part->Slice(0, end - begin);
    absl::Status status =
        step.node->BackwardWeightRows(kernels_, dy, begin, grads);
    if (status.ok()) status = sink_.TakeRows(parameter, begin, grads);
    if (!status.ok()) return InOp(*step.node, status);
  }
  parameter.grad_written = true;
  return absl::OkStatus();
}

absl::Status BackwardPass::RunWeights(Tape::Step& step, int begin) {
  const int first = static_cast<int>(step.inputs.size()) - step.num_weights;
  TROUPE_RETURN_IF_ERROR(NeedValues(sink_, tape_.values_, step, first));
  absl::InlinedVector<WeightGrad, 2> grads(step.num_weights);
  absl::InlinedVector<bool*, 2> written(step.num_weights);  // null: a constant
  bool any = false, any_written = false, all_written = true, apart = false;
  for (int i = begin; i < step.num_weights; ++i) {
    const std::int32_t value = step.inputs[first + i];
    if (value < 0) continue;
    absl::StatusOr<GradPlace> place = PlaceOf(tape_.values_[value]);
    if (!place.ok()) return InOp(*step.node, place.status());
    grads[i].grad = std::move(place->grad);
    written[i] = place->written;
    any = true;
    apart |=
        grads[i].grad.dtype() != tape_.values_[value].parameter->value.dtype();
    any_written |= *written[i];
    all_written &= *written[i];
  }
  if (!any) return absl::OkStatus();
  const Tensor& dy =
      mode_ == Mode::kWeights ? step.dy : tape_.values_[step.output].grad;
  if (apart) return RunWeightsApart(step, begin, dy, absl::MakeSpan(grads));
  for (int i = begin; i < step.num_weights; ++i) {
    if (written[i] == nullptr) continue;
    // A kernel adds to all of its gradients or to none.
    if (any_written && !all_written && !*written[i]) {
      TROUPE_RETURN_IF_ERROR(kernels_.Fill(0.0, grads[i].grad));
    }
    *written[i] = true;
  }
  absl::Status status = step.node->BackwardWeights(
      kernels_, dy, /*accumulate=*/any_written, absl::MakeSpan(grads));
  return status.ok() ? status : InOp(*step.node, status);
}

// Gradients whose dtype differs from the parameters' are computed in the
// parameters' dtype, in separate memory, and added.
absl::Status BackwardPass::RunWeightsApart(Tape::Step& step, int begin,
                                           const Tensor& dy,
                                           absl::Span<WeightGrad> grads) {
  const int first = static_cast<int>(step.inputs.size()) - step.num_weights;
  for (int i = begin; i < step.num_weights; ++i) {
    if (step.inputs[first + i] < 0) continue;
    const Parameter& parameter =
        *tape_.values_[step.inputs[first + i]].parameter;
    absl::StatusOr<Tensor> grad = Tensor::Create(
        parameter.shape, parameter.value.dtype(), kernels_.allocator());
    if (!grad.ok()) return InOp(*step.node, grad.status());
    grads[i].grad = *std::move(grad);
  }
  const absl::Status status =
      step.node->BackwardWeights(kernels_, dy, /*accumulate=*/false, grads);
  if (!status.ok()) return InOp(*step.node, status);
  for (int i = begin; i < step.num_weights; ++i) {
    const std::int32_t value = step.inputs[first + i];
    if (value < 0) continue;
    TROUPE_RETURN_IF_ERROR(AddTo(tape_.values_[value], grads[i].grad));
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
    // A node may have allocated a gradient for a constant weight.
    if (step.inputs[first + i] < 0) continue;
    status = Give(step.inputs[first + i], grads[i].grad);
    if (!status.ok()) return InOp(*step.node, status);
  }
  return absl::OkStatus();
}

absl::Status BackwardPass::RunInputs(Tape::Step& step) {
  const int count = static_cast<int>(step.inputs.size()) - step.num_weights;
  absl::InlinedVector<Tensor, 4> dx(count);
  absl::InlinedVector<bool, 4> wanted(count);
  bool any = false;
  for (int i = 0; i < count; ++i) any |= wanted[i] = step.inputs[i] >= 0;
  if (any || !step.weights_are_leaves) {
    TROUPE_RETURN_IF_ERROR(
        NeedValues(sink_, tape_.values_, step, count + step.num_weights));
  }
  if (!step.weights_are_leaves) {
    TROUPE_RETURN_IF_ERROR(RunComputedWeights(step));
  }
  if (!any) return absl::OkStatus();
  if (AddsToInput(step)) return RunInputOnto(step);
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

// Whether the input has a gradient already, as that of a norm has from a
// residual connection around it, and the op can add to it.
bool BackwardPass::AddsToInput(const Tape::Step& step) const {
  const int count = static_cast<int>(step.inputs.size()) - step.num_weights;
  if (count != 1 || step.inputs[0] < 0) return false;
  if (!step.node->AddsInputGradient()) return false;
  const Tape::Value& value = tape_.values_[step.inputs[0]];
  return value.parameter == nullptr && value.grad.defined() &&
         !value.grad.is_meta();
}

absl::Status BackwardPass::RunInputOnto(Tape::Step& step) {
  Tensor& grad = tape_.values_[step.inputs[0]].grad;
  absl::StatusOr<Tensor> sum =
      Tensor::Create(grad.shape(), grad.dtype(), kernels_.allocator());
  absl::Status status = sum.status();
  if (status.ok()) {
    status = step.node->BackwardInputOnto(
        kernels_, tape_.values_[step.output].grad, grad, *sum);
  }
  if (!status.ok()) return InOp(*step.node, status);
  grad = *std::move(sum);
  return absl::OkStatus();
}

absl::Status BackwardPass::Give(std::int32_t id, const Tensor& grad) {
  TROUPE_CHECK(id >= 0, "a gradient belongs to a tracked value");
  Tape::Value& value = tape_.values_[id];
  if (value.parameter) return AddTo(value, grad);
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

absl::Status BackwardPass::AddTo(const Tape::Value& value, const Tensor& grad) {
  TROUPE_ASSIGN_OR_RETURN(GradPlace place, PlaceOf(value));
  const bool add = std::exchange(*place.written, true);
  if (!add) return kernels_.Copy(grad, place.grad);
  if (grad.dtype() == place.grad.dtype()) {
    return kernels_.Add(place.grad, grad, place.grad);
  }
  TROUPE_ASSIGN_OR_RETURN(
      Tensor converted,
      Tensor::Create(grad.shape(), place.grad.dtype(), kernels_.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels_.Copy(grad, converted));
  return kernels_.Add(place.grad, converted, place.grad);
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
