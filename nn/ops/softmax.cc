#include "nn/ops/softmax.h"

#include <utility>

#include "base/check.h"
#include "nn/ops/op_util.h"
#include "nn/ops/permute.h"

namespace troupe::nn::ops {
namespace {

class SoftmaxNode final : public Node {
 public:
  SoftmaxNode(const char* name, SoftmaxForm form, Tensor y)
      : name_(name), form_(form), y_(std::move(y)) {}
  const char* name() const override { return name_; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(y_.shape(), y_.dtype(), kernels.allocator()));
    return kernels.SoftmaxBackward(form_, y_, dy, dx[0]);
  }

 private:
  const char* const name_;
  const SoftmaxForm form_;
  const Tensor y_;
};

Tensor OfLastAxis(Context& ctx, const char* name, SoftmaxForm form,
                  const Tensor& x) {
  Tensor y = ctx.Empty(name, x.shape(), x.dtype());
  ctx.Note(name, y, 4.0 * y.numel());
  if (!ctx.computes()) return y;
  const absl::Status status = ctx.kernels().SoftmaxForward(form, x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<SoftmaxNode>(name, form, y); });
}

Tensor OfAxis(Context& ctx, const char* name, SoftmaxForm form, const Tensor& x,
              int given_axis) {
  if (!ctx.ok()) return Tensor();
  const int axis = AxisOf(x, given_axis);
  if (axis < 0 || x.dim(axis) == 0) {
    return BadShapes(ctx, name, " takes x with elements along axis ",
                     given_axis, ", got ", Str(x));
  }
  const int last = x.shape().rank() - 1;
  if (axis == last) return OfLastAxis(ctx, name, form, x);
  const Tensor moved = Transpose(ctx, x, axis, last);
  if (!ctx.ok()) return Tensor();
  const Tensor y = OfLastAxis(ctx, name, form, moved);
  return Transpose(ctx, y, axis, last);
}

}  // namespace

Tensor Softmax(Context& ctx, const Tensor& x, int axis) {
  return OfAxis(ctx, "softmax", SoftmaxForm::kPlain, x, axis);
}

Tensor LogSoftmax(Context& ctx, const Tensor& x, int axis) {
  return OfAxis(ctx, "log_softmax", SoftmaxForm::kLog, x, axis);
}

}  // namespace troupe::nn::ops
