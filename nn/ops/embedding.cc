#include "nn/ops/embedding.h"

#include <array>
#include <utility>

#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class EmbeddingNode final : public Node {
 public:
  explicit EmbeddingNode(Tensor indices) : indices_(std::move(indices)) {}
  const char* name() const override { return "embedding"; }

  // Indices are integers, and have no gradient.
  absl::Status BackwardInputs(Kernels&, const Tensor&, absl::Span<const bool>,
                              absl::Span<Tensor>) override {
    return absl::OkStatus();
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    return kernels.EmbeddingBackward(indices_, dy, accumulate, grads[0].grad);
  }

 private:
  const Tensor indices_;
};

}  // namespace

Tensor Embedding(Context& ctx, const Tensor& indices, const Tensor& table) {
  if (!ctx.ok()) return Tensor();
  const int rank = indices.shape().rank();
  if (!indices.defined() || indices.dtype() != DType::kI64 ||
      rank >= Shape::kMaxRank || table.shape().rank() != 2) {
    return BadShapes(ctx,
                     "embedding takes i64 indices[...] and table[V, D], got ",
                     Str(indices), " and ", Str(table));
  }
  std::array<std::int64_t, Shape::kMaxRank> dims = {};
  for (int axis = 0; axis < rank; ++axis) dims[axis] = indices.dim(axis);
  dims[rank] = table.dim(1);
  Tensor y =
      ctx.Empty("embedding", Shape(absl::MakeConstSpan(dims.data(), rank + 1)),
                table.dtype());
  ctx.Note("embedding", y, 0);
  if (!ctx.computes()) return y;
  const absl::Status status = ctx.kernels().EmbeddingForward(indices, table, y);
  const std::array<Tensor, 2> inputs = {indices, table};
  return Finish(ctx, status, inputs, /*num_weights=*/1, y,
                [&] { return std::make_unique<EmbeddingNode>(indices); });
}

}  // namespace troupe::nn::ops
