#include "nn/ops/cast.h"

#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class CastNode final : public Node {
 public:
  explicit CastNode(DType from) : from_(from) {}
  const char* name() const override { return "cast"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(dy.shape(), from_, kernels.allocator()));
    return kernels.Copy(dy, dx[0]);
  }

 private:
  const DType from_;
};

}  // namespace

Tensor Cast(Context& ctx, const Tensor& x, DType dtype) {
  if (!ctx.ok()) return Tensor();
  if (!x.defined() || !IsFloating(x.dtype()) || !IsFloating(dtype)) {
    return BadShapes(ctx,
                     "cast takes a tensor and a dtype, both floating, got ",
                     Str(x), " and ", DTypeName(dtype));
  }
  if (x.dtype() == dtype) return x;
  Tensor y = ctx.Empty("cast", x.shape(), dtype);
  ctx.Note("cast", y, 0);
  if (ctx.shape_only()) return y;
  const absl::Status status = ctx.kernels().Copy(x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<CastNode>(x.dtype()); });
}

}  // namespace troupe::nn::ops
