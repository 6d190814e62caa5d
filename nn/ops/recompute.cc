#include "nn/ops/recompute.h"

#include <memory>
#include <utility>
#include <vector>

#include "nn/autograd/segment.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class PartOfModel final : public Segment {
 public:
  // `before` is the context in which the part first ran.
  PartOfModel(const Context& before, ModelPart part, const Tensor& x)
      : before_(before), part_(std::move(part)), x_(x.Detached()) {
    before_.set_recomputing(true);
    before_.set_uses(nullptr);
    // The part takes none of these tensors, and they would stay in memory with
    // it.
    before_.stashed() = StashedTensors();
  }

  absl::StatusOr<Tensor> Run(Kernels&, Tape& tape, Tensor& x) override {
    before_.set_tape(&tape);
    x = tape.Watch(x_);
    Tensor y = part_(before_, x);
    if (!before_.ok()) return before_.status();
    return y;
  }

 private:
  Context before_;
  const ModelPart part_;
  const Tensor x_;
};

// Checks that a part that runs again has one input and one output: a tensor
// that it stashes for outer modules, or pops from them, would be another,
// without a gradient.
absl::Status CheckStashes(const StashedTensors& before,
                          const StashedTensors& after) {
  constexpr char kRule[] =
      "; what runs again in backward must have both ends of a skip connection, "
      "or none";
  for (const StashedTensor& outer : before.waiting()) {
    if (after.IsWaiting(outer.name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the part of the model to recompute pops \"", outer.name,
                     "\", which was stashed outside of it", kRule));
  }
  for (const StashedTensor& inner : after.waiting()) {
    if (before.IsWaiting(inner.name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the part of the model to recompute stashes \"",
                     inner.name, "\" and does not pop it", kRule));
  }
  return absl::OkStatus();
}

Tensor RunFirst(Context& ctx, const ModelPart& part, const Tensor& x) {
  const StashedTensors before = ctx.stashed();
  Tensor y = part(ctx, x);
  if (!ctx.ok()) return Tensor();
  const absl::Status balanced = CheckStashes(before, ctx.stashed());
  return balanced.ok() ? y : ctx.Fail(balanced);
}

}  // namespace

Tensor Recompute(Context& ctx, const ModelPart& part, const Tensor& x) {
  if (!ctx.ok()) return Tensor();
  Tape* const tape = ctx.tape();
  if (tape == nullptr || ctx.shape_only()) return RunFirst(ctx, part, x);
  auto segment = std::make_unique<PartOfModel>(ctx, part, x);
  std::vector<Parameter*> used;
  std::vector<Parameter*>* const outer_uses = ctx.uses();
  ctx.set_tape(nullptr);
  ctx.set_uses(&used);
  Tensor y = RunFirst(ctx, part, x.Detached());
  ctx.set_uses(outer_uses);
  ctx.set_tape(tape);
  if (!ctx.ok()) return Tensor();
  if (!y.defined()) {
    return ctx.Fail(
        absl::InvalidArgumentError("Recompute(): the part of the model "
                                   "returned an undefined tensor; return "
                                   "one with values"));
  }
  const absl::Status fits = tape->CheckInputs("recompute", {x});
  if (!fits.ok()) return ctx.Fail(fits);
  return tape->RecordSegment(std::move(segment), x, used, std::move(y));
}

}  // namespace troupe::nn::ops
