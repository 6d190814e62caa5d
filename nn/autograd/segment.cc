#include "nn/autograd/segment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"

namespace troupe::nn {

// Translates events of a segment's tape into events of the outer tape's
// parameters.
class BackwardPass::SegmentSink : public GradientSink {
 public:
  SegmentSink(BackwardPass& outer, Tape::Step& step)
      : outer_(outer), step_(step) {}

  absl::Status GradientNeeded(Parameter& parameter) override {
    return outer_.sink_.GradientNeeded(parameter);
  }
  absl::Status ValueNeeded(Parameter& parameter) override {
    return outer_.sink_.ValueNeeded(parameter);
  }
  void GradientComplete(Parameter& parameter) override {
    outer_.FinishSegmentUse(step_, NumberOf(parameter));
  }
  void LastReaderDone(Parameter& parameter) override {
    outer_.FinishSegmentRead(step_, NumberOf(parameter));
  }

 private:
  int NumberOf(const Parameter& parameter) const {
    for (int i = 0; i < step_.num_weights; ++i) {
      const std::int32_t value = step_.inputs[1 + i];
      if (outer_.tape_.values_[value].parameter == &parameter) return i;
    }
    return -1;  // the first run did not use it
  }

  BackwardPass& outer_;
  Tape::Step& step_;
};

Tensor Tape::RecordSegment(std::unique_ptr<Segment> segment, const Tensor& x,
                           absl::Span<Parameter* const> parameters,
                           Tensor output) {
  absl::InlinedVector<Tensor, 8> inputs = {x};
  for (Parameter* parameter : parameters) {
    if (parameter->requires_grad) inputs.push_back(Leaf(*parameter));
  }
  if (!Tracks(inputs)) return output.Detached();
  const int weights = static_cast<int>(inputs.size()) - 1;
  output = Record(nullptr, inputs, weights, std::move(output));
  auto recorded = std::make_unique<RecordedSegment>();
  recorded->segment = std::move(segment);
  recorded->used.resize(weights);
  recorded->read.resize(weights);
  nodes_.back().segment = std::move(recorded);
  return output;
}

absl::StatusOr<bool> BackwardPass::AdvanceSegment(Tape::Step& step) {
  Tape::RecordedSegment& segment = *step.segment;
  Tensor& dy = tape_.values_[step.output].grad;
  if (inner_ == nullptr && Enters(step)) {
    absl::StatusOr<Tensor> output = Tensor();
    if (mode_ != Mode::kWeights) {
      output = segment.segment->Run(kernels_, segment.tape, segment.x);
    }
    if (!output.ok()) {
      return base::WithMessage(
          output.status(),
          absl::StrCat("recomputation: ", output.status().message()));
    }
    inner_sink_ = std::make_unique<SegmentSink>(*this, step);
    inner_ = std::make_unique<BackwardPass>(segment.tape, kernels_,
                                            *inner_sink_, mode_);
    if (mode_ != Mode::kWeights) inner_->Seed(*output, dy);
    return true;  // the second run is a piece
  }
  if (inner_ != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(const bool more, inner_->Next());
    if (more) return true;
  }
  TROUPE_RETURN_IF_ERROR(EndSegment(step));
  return false;
}

absl::Status BackwardPass::EndSegment(Tape::Step& step) {
  Tape::RecordedSegment& segment = *step.segment;
  const bool entered = inner_ != nullptr;
  inner_.reset();
  inner_sink_.reset();
  --next_;
  if (mode_ != Mode::kWeights) {
    if (entered && step.inputs[0] >= 0) {
      const Tensor dx = segment.tape.InputGrad(segment.x);
      if (dx.defined()) TROUPE_RETURN_IF_ERROR(Give(step.inputs[0], dx));
    }
    FinishUse(step.inputs[0]);
    FinishRead(step.inputs[0]);
    // Parameters that the second run did not reach.
    for (int i = 0; i < step.num_weights; ++i) FinishSegmentRead(step, i);
    Tensor& grad = tape_.values_[step.output].grad;
    if (mode_ == Mode::kInputs) step.dy = grad;
    grad = Tensor();
  }
  if (mode_ != Mode::kInputs) {
    for (int i = 0; i < step.num_weights; ++i) FinishSegmentUse(step, i);
    step.dy = Tensor();
    step.segment.reset();
  }
  return absl::OkStatus();
}

void BackwardPass::FinishSegmentUse(Tape::Step& step, int number) {
  if (number < 0 || step.segment->used[number]) return;
  step.segment->used[number] = true;
  FinishUse(step.inputs[1 + number]);
}

void BackwardPass::FinishSegmentRead(Tape::Step& step, int number) {
  if (number < 0 || step.segment->read[number]) return;
  step.segment->read[number] = true;
  FinishRead(step.inputs[1 + number]);
}

}  // namespace troupe::nn
