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

}  // namespace

Tensor Recompute(Context& ctx, const ModelPart& part, const Tensor& x) {
  if (!ctx.ok()) return Tensor();
  Tape* const tape = ctx.tape();
  if (tape == nullptr || ctx.shape_only()) return part(ctx, x);
  auto segment = std::make_unique<PartOfModel>(ctx, part, x);
  std::vector<Parameter*> used;
  std::vector<Parameter*>* const outer_uses = ctx.uses();
  ctx.set_tape(nullptr);
  ctx.set_uses(&used);
  Tensor y = part(ctx, x.Detached());
  ctx.set_uses(outer_uses);
  ctx.set_tape(tape);
  if (!ctx.ok()) return Tensor();
  if (!y.defined()) {
    return ctx.Fail(absl::InvalidArgumentError(
        "the part of the model to recompute returned an undefined tensor"));
  }
  const absl::Status fits = tape->CheckInputs("recompute", {x});
  if (!fits.ok()) return ctx.Fail(fits);
  return tape->RecordSegment(std::move(segment), x, used, std::move(y));
}

}  // namespace troupe::nn::ops
