// Rows of a table by their numbers (torch.nn.functional.embedding), and rows by
// position.
//
//   Tensor y = ops::Embedding(ctx, tokens, ctx.Use(*table));
//   Tensor z = ops::AddPositions(ctx, y, ctx.Use(*positions));
//
// indices i64 [...], table [V, D] -> y [..., D]. The gradient of the table adds
// rows in ascending order of the indices' positions: the same bits on any
// machine. Row `padding_index` gets no gradient.
//
// PieceEmbedding() is that of ranks along an axis of the mesh which share a
// table of `rows` rows: each has ceil(rows / ranks) of them, in the order of
// the ranks, and perhaps padding. A rank looks up its own; the sum over the
// ranks, of one row and zeros, has the bits of one rank's.
//
// PieceEmbeddingOfTokens() gives a rank its own tokens of it alone, if ranks
// share those, too (nn/ops/tokens.h): indices [N, T, ...] -> y [N, T / ranks,
// ..., D].
//
// AddPositions: x [N, T, D], table [P, D], T <= P -> y [N, T, D], with row
// `first` + t of the table added to position t of each sample.
//
// A sample's position 0 is that after the past tokens of its text, if the
// context has a key-value cache (nn/autograd/kv_cache.h).
//
// Errors (sticky in ctx): kInvalidArgument with the shapes; kOutOfRange for an
// index outside the table; kFailedPrecondition: the context has no collectives
// along the axis.

#ifndef NN_OPS_EMBEDDING_H_
#define NN_OPS_EMBEDDING_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor Embedding(Context& ctx, const Tensor& indices, const Tensor& table,
                 std::optional<std::int64_t> padding_index = std::nullopt);

Tensor PieceEmbedding(Context& ctx, const Tensor& indices, const Tensor& piece,
                      std::int64_t rows, absl::string_view axis,
                      std::optional<std::int64_t> padding_index = std::nullopt);

Tensor PieceEmbeddingOfTokens(
    Context& ctx, const Tensor& indices, const Tensor& piece, std::int64_t rows,
    const AxisPlace& place,
    std::optional<std::int64_t> padding_index = std::nullopt);

Tensor AddPositions(Context& ctx, const Tensor& x, const Tensor& table,
                    std::int64_t first = 0);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_EMBEDDING_H_
