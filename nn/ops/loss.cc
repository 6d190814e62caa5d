#include "nn/ops/loss.h"

#include <array>
#include <utility>

#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// Both losses know their gradient when forward has run.
class LossNode final : public Node {
 public:
  LossNode(const char* name, Tensor dx) : name_(name), dx_(std::move(dx)) {}
  const char* name() const override { return name_; }

  absl::Status BackwardInputs(Kernels&, const Tensor&, absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    dx[0] = std::move(dx_);
    return absl::OkStatus();
  }

 private:
  const char* name_;
  Tensor dx_;
};

template <typename Kernel>
Tensor Loss(Context& ctx, const char* name, const Tensor& x, Kernel kernel) {
  Tensor stats = ctx.Empty({kNumLossStats}, DType::kF64);
  ctx.Note(name, stats, 4.0 * x.numel());
  if (ctx.shape_only()) return stats;
  Tensor dx;
  if (ctx.Tracks({x})) dx = ctx.Empty(x.shape(), x.dtype());
  const absl::Status status = kernel(stats, dx);
  return Finish(ctx, status, {x}, /*num_weights=*/0, stats,
                [&] { return std::make_unique<LossNode>(name, dx); });
}

}  // namespace

Tensor SoftmaxCrossEntropy(Context& ctx, const Tensor& logits,
                           const Tensor& targets, std::int64_t ignore_index) {
  if (!ctx.ok()) return Tensor();
  if (logits.shape().rank() != 2 || logits.dim(1) < 1 ||
      targets.shape() != Shape{logits.dim(0)} ||
      targets.dtype() != DType::kI64) {
    return BadShapes(
        ctx, "cross entropy takes logits[N, C] and i64 targets[N], got ",
        Str(logits), " and ", Str(targets));
  }
  return Loss(ctx, "cross_entropy", logits, [&](Tensor& stats, Tensor& dx) {
    return ctx.kernels().SoftmaxCrossEntropy(logits, targets, ignore_index,
                                             stats, dx);
  });
}

Tensor MeanSquaredError(Context& ctx, const Tensor& prediction,
                        const Tensor& target) {
  if (!ctx.ok()) return Tensor();
  if (prediction.shape() != target.shape() ||
      prediction.dtype() != target.dtype()) {
    return BadShapes(ctx, "mse takes two tensors of one shape and dtype, got ",
                     Str(prediction), " and ", Str(target));
  }
  return Loss(ctx, "mse", prediction, [&](Tensor& stats, Tensor& dx) {
    return ctx.kernels().MeanSquaredError(prediction, target, stats, dx);
  });
}

}  // namespace troupe::nn::ops
