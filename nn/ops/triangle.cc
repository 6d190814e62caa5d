#include "nn/ops/triangle.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class KeepNode final : public Node {
 public:
  explicit KeepNode(Tensor mask) : mask_(std::move(mask)) {}
  const char* name() const override { return "triangle"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(dy.shape(), dy.dtype(), kernels.allocator()));
    return kernels.Binary(BinaryFunction::kKeep, dy, mask_, dx[0]);
  }

 private:
  const Tensor mask_;
};

// Returns a matrix of 1 where an element is kept, else 0.
absl::StatusOr<Tensor> MaskOf(Kernels& kernels, const Tensor& x, bool lower,
                              int diagonal) {
  const std::int64_t rows = x.dim(x.shape().rank() - 2);
  const std::int64_t cols = x.dim(x.shape().rank() - 1);
  std::vector<double> values(rows * cols);
  for (std::int64_t at = 0; at < rows * cols; ++at) {
    const std::int64_t distance = at % cols - at / cols;
    values[at] = lower ? distance <= diagonal : distance >= diagonal;
  }
  const bool wide = x.dtype() == DType::kF64;
  TROUPE_ASSIGN_OR_RETURN(
      Tensor mask,
      Tensor::Create({rows, cols}, wide ? DType::kF64 : DType::kF32,
                     kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.SetValues(values, mask));
  if (mask.dtype() == x.dtype()) return mask;
  TROUPE_ASSIGN_OR_RETURN(Tensor narrow, Tensor::Create({rows, cols}, x.dtype(),
                                                        kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.Copy(mask, narrow));
  return narrow;
}

Tensor Triangle(Context& ctx, const char* name, bool lower, const Tensor& x,
                int diagonal) {
  if (!ctx.ok()) return Tensor();
  if (x.shape().rank() < 2 || !IsFloating(x.dtype())) {
    return BadShapes(ctx, name, " takes matrices x[..., R, C], got ", Str(x));
  }
  Tensor y = ctx.Empty(name, x.shape(), x.dtype());
  ctx.Note(name, y, 0);
  if (!ctx.computes()) return y;
  const absl::StatusOr<Tensor> mask = MaskOf(ctx.kernels(), x, lower, diagonal);
  if (!mask.ok()) return ctx.Fail(mask.status());
  const absl::Status status =
      ctx.kernels().Binary(BinaryFunction::kKeep, x, *mask, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<KeepNode>(*mask); });
}

}  // namespace

Tensor Tril(Context& ctx, const Tensor& x, int diagonal) {
  return Triangle(ctx, "tril", /*lower=*/true, x, diagonal);
}

Tensor Triu(Context& ctx, const Tensor& x, int diagonal) {
  return Triangle(ctx, "triu", /*lower=*/false, x, diagonal);
}

}  // namespace troupe::nn::ops
