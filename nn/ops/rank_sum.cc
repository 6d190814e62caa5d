#include "nn/ops/rank_sum.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "nn/kernels/strided_loops.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// Returns the sum over the ranks, in memory of its own.
absl::StatusOr<Tensor> SumOf(Kernels& kernels, Collectives* peers,
                             const Tensor& part) {
  TROUPE_ASSIGN_OR_RETURN(Tensor sum, Tensor::Create(part.shape(), part.dtype(),
                                                     kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.Copy(part, sum));
  TROUPE_RETURN_IF_ERROR(AddUp(peers, sum));
  return sum;
}

// Backward adds up the gradient over `peers`; null: it is handed on.
class RankSumNode final : public Node {
 public:
  explicit RankSumNode(Collectives* peers) : peers_(peers) {}
  const char* name() const override { return "rank_sum"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    dx[0] = dy;
    if (peers_ == nullptr) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(dx[0], SumOf(kernels, peers_, dy));
    return absl::OkStatus();
  }

 private:
  Collectives* const peers_;
};

// Copies columns [..., `shape`] between tensors with other numbers of columns.
absl::Status CopyColumns(Kernels& kernels, const Tensor& from,
                         std::int64_t from_begin, Tensor& to,
                         std::int64_t to_begin, const Shape& shape) {
  if (shape.numel() == 0) return absl::OkStatus();
  StridedLoops loops =
      LoopsOver(shape, StridesOf(from.shape()), StridesOf(to.shape()));
  loops.a_begin = from_begin;
  loops.b_begin = to_begin;
  return kernels.CopyStrided(loops, from, to);
}

// Columns of a part [..., P] of a whole [..., C], as the extents of a copy.
struct ColumnRange {
  std::int64_t begin = 0;  // the first in the whole
  Shape shape;             // columns of the part that the whole has
};

ColumnRange RangeOf(const Tensor& part, std::int64_t columns, int rank) {
  const int last = part.shape().rank() - 1;
  const std::int64_t extent = part.dim(last);
  ColumnRange range;
  range.begin = std::min(columns, rank * extent);
  range.shape = part.shape();
  range.shape.set(last, std::min(extent, columns - range.begin));
  return range;
}

// Backward takes the columns of the part; the padding's gradient is 0.
class GatherColumnsNode final : public Node {
 public:
  GatherColumnsNode(const Shape& part, ColumnRange range)
      : part_(part), range_(std::move(range)) {}
  const char* name() const override { return "gather_columns"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(part_, dy.dtype(), kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(kernels.Fill(0.0, dx[0]));
    return CopyColumns(kernels, dy, range_.begin, dx[0], 0, range_.shape);
  }

 private:
  const Shape part_;
  const ColumnRange range_;
};

// Returns the columns of all ranks side by side, without padding.
absl::StatusOr<Tensor> Gathered(Kernels& kernels, Collectives& peers,
                                const Tensor& part, const Shape& whole) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor y, Tensor::Create(whole, part.dtype(), kernels.allocator()));
  if (part.numel() == 0) return y;
  TROUPE_ASSIGN_OR_RETURN(const Tensor parts,
                          Tensor::Create({peers.size() * part.numel()},
                                         part.dtype(), kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(peers.AllGather(part, parts));
  for (int rank = 0; rank < peers.size(); ++rank) {
    const ColumnRange range = RangeOf(part, whole[whole.rank() - 1], rank);
    TROUPE_RETURN_IF_ERROR(
        CopyColumns(kernels, parts.FlatView(rank * part.numel(), part.shape()),
                    0, y, range.begin, range.shape));
  }
  return y;
}

}  // namespace

Tensor GatherColumns(Context& ctx, const Tensor& part, std::int64_t columns,
                     absl::string_view axis) {
  Collectives* const peers = PeersAlong(ctx, axis);
  if (!ctx.ok()) return Tensor();
  Shape whole = part.shape();
  whole.set(whole.rank() - 1, columns);
  if (!ctx.computes()) {
    Tensor y = ctx.Empty("gather_columns", whole, part.dtype());
    ctx.Note("gather_columns", y, 0);
    return y;
  }
  absl::StatusOr<Tensor> y = Gathered(ctx.kernels(), *peers, part, whole);
  if (!y.ok()) return ctx.Fail(y.status());
  return Finish(ctx, absl::OkStatus(), {part}, /*num_weights=*/0, *y, [&] {
    return std::make_unique<GatherColumnsNode>(
        part.shape(), RangeOf(part, columns, peers->rank()));
  });
}

Tensor RankSum(Context& ctx, const Tensor& x, absl::string_view axis) {
  Collectives* const peers = PeersAlong(ctx, axis);
  if (!ctx.ok()) return Tensor();
  if (!ctx.computes()) return x;
  absl::StatusOr<Tensor> y = SumOf(ctx.kernels(), peers, x);
  if (!y.ok()) return ctx.Fail(y.status());
  return Finish(ctx, absl::OkStatus(), {x}, /*num_weights=*/0, *y,
                [] { return std::make_unique<RankSumNode>(nullptr); });
}

Tensor RankSumOfGradient(Context& ctx, const Tensor& x,
                         absl::string_view axis) {
  Collectives* const peers = PeersAlong(ctx, axis);
  if (!ctx.ok()) return Tensor();
  if (!ctx.computes()) return x;
  Tensor y = x.Detached();
  return Finish(ctx, absl::OkStatus(), {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<RankSumNode>(peers); });
}

Collectives* PeersAlong(Context& ctx, absl::string_view axis) {
  if (!ctx.ok()) return nullptr;
  Collectives* const peers = ctx.collectives(axis);
  if (peers == nullptr && !ctx.shape_only()) {
    ctx.Fail(absl::FailedPreconditionError(
        absl::StrCat("the layer is cut along ", axis,
                     ", and the context has no collectives along it: call "
                     "Context::set_collectives(), or run the whole model")));
  }
  return peers;
}

absl::Status AddUp(Collectives* peers, const Tensor& part) {
  if (peers == nullptr || part.numel() == 0) return absl::OkStatus();
  return peers->AllReduce(ReduceOp::kSum, part);
}

absl::Status SumOfBlocks(Kernels& kernels, int begin, int end,
                         const ComputeBlock& compute, Tensor& sum) {
  if (end - begin <= 1) return compute(begin, sum);
  const int middle = begin + (end - begin) / 2;
  TROUPE_RETURN_IF_ERROR(SumOfBlocks(kernels, begin, middle, compute, sum));
  TROUPE_ASSIGN_OR_RETURN(Tensor other, Tensor::Create(sum.shape(), sum.dtype(),
                                                       kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(SumOfBlocks(kernels, middle, end, compute, other));
  return kernels.Add(sum, other, sum);
}

}  // namespace troupe::nn::ops
