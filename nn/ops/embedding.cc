#include "nn/ops/embedding.h"

#include <array>
#include <utility>

#include "nn/autograd/kv_cache.h"
#include "nn/ops/op_util.h"
#include "nn/ops/rank_sum.h"
#include "nn/ops/tokens.h"

namespace troupe::nn::ops {
namespace {

class EmbeddingNode final : public Node {
 public:
  EmbeddingNode(Tensor indices, std::int64_t padding_row)
      : indices_(std::move(indices)), padding_row_(padding_row) {}
  const char* name() const override { return "embedding"; }

  // Indices are integers, and have no gradient.
  absl::Status BackwardInputs(Kernels&, const Tensor&, absl::Span<const bool>,
                              absl::Span<Tensor>) override {
    return absl::OkStatus();
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    return kernels.EmbeddingBackward(indices_, dy, padding_row_, accumulate,
                                     grads[0].grad);
  }

 private:
  const Tensor indices_;
  const std::int64_t padding_row_;
};

class PieceEmbeddingNode final : public Node {
 public:
  PieceEmbeddingNode(Tensor indices, std::int64_t first,
                     std::int64_t padding_row)
      : indices_(std::move(indices)),
        first_(first),
        padding_row_(padding_row) {}
  const char* name() const override { return "piece_embedding"; }

  absl::Status BackwardInputs(Kernels&, const Tensor&, absl::Span<const bool>,
                              absl::Span<Tensor>) override {
    return absl::OkStatus();
  }
  // All ranks have the whole dy.
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    return kernels.PieceEmbeddingBackward(indices_, first_, dy, padding_row_,
                                          accumulate, grads[0].grad);
  }

 private:
  const Tensor indices_;
  const std::int64_t first_, padding_row_;
};

class AddPositionsNode final : public Node {
 public:
  explicit AddPositionsNode(std::int64_t first) : first_(first) {}
  const char* name() const override { return "add_positions"; }

  absl::Status BackwardInputs(Kernels&, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    dx[0] = dy;
    return absl::OkStatus();
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    return kernels.AddPositionsBackward(dy, first_, accumulate, grads[0].grad);
  }

 private:
  const std::int64_t first_;
};

// Adds to each sample the rows from the position of its text on.
absl::Status AddPositionsInTexts(Kernels& kernels, const KvCache& cache,
                                 const Tensor& x, const Tensor& table,
                                 std::int64_t first, Tensor& y) {
  TROUPE_RETURN_IF_ERROR(cache.CheckRows(x));
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    const std::int64_t at = first + cache.places().rows[n].past;
    if (at + x.dim(1) > table.dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("positions have ", table.dim(0), " rows, got ", x.dim(1),
                       " tokens from position ", at));
    }
    Tensor y_n = y.Slice(n, n + 1);
    TROUPE_RETURN_IF_ERROR(
        kernels.AddPositions(x.Slice(n, n + 1), table, at, y_n));
  }
  return absl::OkStatus();
}

// Returns the memory for rows of `table`, of which a whole one has `rows`;
// fails the context if the operands do not fit. A shape-only forward counts the
// rank's own `tokens` alone: nothing keeps the parts that are added up.
Tensor EmbeddingOutput(Context& ctx, const Tensor& indices, const Tensor& table,
                       std::int64_t rows,
                       std::optional<std::int64_t> padding_index,
                       const AxisPlace& tokens = AxisPlace()) {
  const int rank = indices.shape().rank();
  if (!indices.defined() || indices.dtype() != DType::kI64 ||
      rank >= Shape::kMaxRank || table.shape().rank() != 2) {
    return BadShapes(ctx,
                     "embedding takes i64 indices[...] and table[V, D], got ",
                     Str(indices), " and ", Str(table));
  }
  if (padding_index && (*padding_index < 0 || *padding_index >= rows)) {
    return BadShapes(ctx,
                     "embedding takes a row of the table for padding, got ",
                     *padding_index, " for ", Str(table));
  }
  std::array<std::int64_t, Shape::kMaxRank> dims = {};
  for (int axis = 0; axis < rank; ++axis) dims[axis] = indices.dim(axis);
  dims[rank] = table.dim(1);
  Shape shape(absl::MakeConstSpan(dims.data(), rank + 1));
  if (tokens.size > 1) {
    if (rank < 2) {
      return BadShapes(ctx,
                       "embedding for ranks that share tokens takes indices"
                       "[N, T, ...], got ",
                       Str(indices));
    }
    const Shape own = OwnTokens(ctx, shape, tokens);
    if (ctx.shape_only()) shape = own;
    if (!ctx.ok()) return Tensor();
  }
  Tensor y = ctx.Empty("embedding", shape, table.dtype());
  ctx.Note("embedding", y, 0);
  return y;
}

// Looks up the rows that the rank has. They are added up over the ranks, unless
// these share `tokens`.
Tensor LookUpPiece(Context& ctx, const Tensor& indices, const Tensor& piece,
                   std::int64_t rows, absl::string_view axis,
                   std::optional<std::int64_t> padding_index,
                   const AxisPlace& tokens) {
  Collectives* const peers = PeersAlong(ctx, axis);
  if (!ctx.ok()) return Tensor();
  Tensor y = EmbeddingOutput(ctx, indices, piece, rows, padding_index, tokens);
  if (!ctx.computes()) return y;
  const std::int64_t first = peers->rank() * piece.dim(0);
  absl::Status status =
      ctx.kernels().PieceEmbeddingForward(indices, first, rows, piece, y);
  if (status.ok() && tokens.size <= 1) status = AddUp(peers, y);
  const std::array<Tensor, 2> inputs = {indices, piece};
  return Finish(ctx, status, inputs, /*num_weights=*/1, y, [&] {
    return std::make_unique<PieceEmbeddingNode>(indices, first,
                                                padding_index.value_or(-1));
  });
}

}  // namespace

Tensor PieceEmbedding(Context& ctx, const Tensor& indices, const Tensor& piece,
                      std::int64_t rows, absl::string_view axis,
                      std::optional<std::int64_t> padding_index) {
  return LookUpPiece(ctx, indices, piece, rows, axis, padding_index,
                     AxisPlace());
}

Tensor PieceEmbeddingOfTokens(Context& ctx, const Tensor& indices,
                              const Tensor& piece, std::int64_t rows,
                              const AxisPlace& place,
                              std::optional<std::int64_t> padding_index) {
  const Tensor part =
      LookUpPiece(ctx, indices, piece, rows, place.axis, padding_index, place);
  return ctx.computes() ? SumTokens(ctx, part, Tensor(), place) : part;
}

Tensor Embedding(Context& ctx, const Tensor& indices, const Tensor& table,
                 std::optional<std::int64_t> padding_index) {
  if (!ctx.ok()) return Tensor();
  Tensor y = EmbeddingOutput(ctx, indices, table,
                             table.shape().rank() == 2 ? table.dim(0) : 0,
                             padding_index);
  if (!ctx.computes()) return y;
  const absl::Status status = ctx.kernels().EmbeddingForward(indices, table, y);
  const std::array<Tensor, 2> inputs = {indices, table};
  return Finish(ctx, status, inputs, /*num_weights=*/1, y, [&] {
    return std::make_unique<EmbeddingNode>(indices, padding_index.value_or(-1));
  });
}

Tensor AddPositions(Context& ctx, const Tensor& x, const Tensor& table,
                    std::int64_t first) {
  if (!ctx.ok()) return Tensor();
  if (x.shape().rank() != 3 || table.shape().rank() != 2 || first < 0 ||
      x.dim(2) != table.dim(1) || first + x.dim(1) > table.dim(0) ||
      x.dtype() != table.dtype()) {
    return BadShapes(ctx,
                     "positions take x[N, T, D] and table[P, D] of one dtype "
                     "with rows for all T, got ",
                     Str(x), " from position ", first, " and ", Str(table));
  }
  Tensor y = ctx.Empty("add_positions", x.shape(), x.dtype());
  ctx.Note("add_positions", y, 1.0 * y.numel());
  if (!ctx.computes()) return y;
  const absl::Status status =
      ctx.kv_cache() == nullptr
          ? ctx.kernels().AddPositions(x, table, first, y)
          : AddPositionsInTexts(ctx.kernels(), *ctx.kv_cache(), x, table, first,
                                y);
  const std::array<Tensor, 2> inputs = {x, table};
  return Finish(ctx, status, inputs, /*num_weights=*/1, y,
                [&] { return std::make_unique<AddPositionsNode>(first); });
}

}  // namespace troupe::nn::ops
