#include "nn/ops/unary.h"

#include <utility>

#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// Whether f' is a constant, for which backward needs nothing from forward.
bool IsAffine(UnaryFunction f) {
  return f == UnaryFunction::kNegate || f == UnaryFunction::kScale ||
         f == UnaryFunction::kAddScalar;
}

class UnaryNode final : public Node {
 public:
  // `saved` is undefined if IsAffine(f).
  UnaryNode(const char* name, UnaryFunction f, double p, Tensor saved)
      : name_(name), f_(f), p_(p), saved_(std::move(saved)) {}
  const char* name() const override { return name_; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    if (f_ == UnaryFunction::kAddScalar) {
      dx[0] = dy;
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(dy.shape(), dy.dtype(), kernels.allocator()));
    // -dy, or p dy.
    if (IsAffine(f_)) return kernels.UnaryForward(f_, p_, dy, dx[0]);
    return kernels.UnaryBackward(f_, p_, saved_, dy, dx[0]);
  }

 private:
  const char* const name_;
  const UnaryFunction f_;
  const double p_;
  const Tensor saved_;
};

}  // namespace

Tensor Unary(Context& ctx, const char* name, UnaryFunction f, double p,
             const Tensor& x) {
  if (!ctx.ok()) return Tensor();
  if (!x.defined() || !IsFloating(x.dtype())) {
    return BadShapes(ctx, name, " takes floating numbers, got ", Str(x));
  }
  Tensor y = ctx.Empty(name, x.shape(), x.dtype());
  ctx.Note(name, y, 1.0 * y.numel());
  if (!ctx.computes()) return y;
  const absl::Status status = ctx.kernels().UnaryForward(f, p, x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    Tensor saved;
    if (!IsAffine(f)) saved = SavesOutput(f) ? y : x;
    return std::make_unique<UnaryNode>(name, f, p, std::move(saved));
  });
}

}  // namespace troupe::nn::ops
