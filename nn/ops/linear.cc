#include "nn/ops/linear.h"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"
#include "nn/ops/op_util.h"
#include "nn/ops/rank_sum.h"

namespace troupe::nn::ops {
namespace {

// y[N, M] = x[N, K] w[M, K]^T, summed in blocks of K.
absl::Status ForwardInBlocks(Kernels& kernels, const Tensor& x, const Tensor& w,
                             const DepthBlocks& blocks, Tensor& y) {
  const auto compute = [&](int block, Tensor& into) -> absl::Status {
    const std::vector<TermRange>& ranges = blocks[block];
    TROUPE_RETURN_IF_ERROR(kernels.LinearForwardTerms(x, w, ranges[0], into));
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(
          Tensor more,
          Tensor::Create(into.shape(), into.dtype(), kernels.allocator()));
      TROUPE_RETURN_IF_ERROR(kernels.LinearForwardTerms(x, w, ranges[i], more));
      TROUPE_RETURN_IF_ERROR(kernels.Add(into, more, into));
    }
    return absl::OkStatus();
  };
  return SumOfBlocks(kernels, 0, static_cast<int>(blocks.size()), compute, y);
}

// The parts of dx: none, or blocks of M and the ranks that have the others.
struct SumOfInputs {
  SharedBlocks blocks;           // null: one sum by LinearBackwardInput
  Collectives* peers = nullptr;  // null: dx is whole
};

// dx[N, K] = dy[N, M] w[M, K], added up over the peers.
absl::Status BackwardInput(Kernels& kernels, const Tensor& dy, const Tensor& w,
                           const SumOfInputs& sum, Tensor& dx) {
  if (sum.blocks == nullptr) {
    TROUPE_RETURN_IF_ERROR(kernels.LinearBackwardInput(dy, w, dx));
    return AddUp(sum.peers, dx);
  }
  const DepthBlocks& blocks = *sum.blocks;
  const auto compute = [&](int block, Tensor& into) {
    absl::Status status;
    bool accumulate = false;
    for (const TermRange& range : blocks[block]) {
      status.Update(
          kernels.LinearBackwardInputTerms(dy, w, range, accumulate, into));
      accumulate = true;
    }
    return status;
  };
  TROUPE_RETURN_IF_ERROR(
      SumOfBlocks(kernels, 0, static_cast<int>(blocks.size()), compute, dx));
  return AddUp(sum.peers, dx);
}

class LinearNode final : public Node {
 public:
  LinearNode(Tensor x, Tensor w, SumOfInputs sum)
      : x_(std::move(x)), w_(std::move(w)), sum_(std::move(sum)) {}
  const char* name() const override { return "linear"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_.shape(), x_.dtype(), kernels.allocator()));
    Tensor dx_RK = IsMatrix(x_) ? dx[0] : AsMatrix(dx[0]);
    return BackwardInput(kernels, IsMatrix(x_) ? dy : AsMatrix(dy), w_, sum_,
                         dx_RK);
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    Tensor none;
    Tensor& dw = grads[0].grad;
    Tensor& db = grads.size() > 1 ? grads[1].grad : none;
    if (!grads[0].wanted()) return kernels.BiasBackward(dy, accumulate, db);
    if (IsMatrix(x_)) {
      return kernels.LinearBackwardWeight(x_, dy, accumulate, dw, db);
    }
    return kernels.LinearBackwardWeight(AsMatrix(x_), AsMatrix(dy), accumulate,
                                        dw, db);
  }
  std::int64_t WeightRows(const Kernels& kernels) const override {
    return kernels.LinearGradientRows(w_.dtype(), AsMatrix(x_).dim(0),
                                      w_.dim(1), w_.dim(0));
  }
  absl::Status BackwardWeightRows(Kernels& kernels, const Tensor& dy,
                                  std::int64_t begin, Tensor& rows) override {
    return kernels.LinearBackwardWeightRows(AsMatrix(x_), AsMatrix(dy), begin,
                                            rows);
  }

 private:
  Tensor x_, w_;
  const SumOfInputs sum_;
};

// The node of a product with rows [begin, end) of a weight alone.
class LinearRowsNode final : public Node {
 public:
  LinearRowsNode(Tensor x, Tensor w, std::int64_t begin, std::int64_t end,
                 SumOfInputs sum)
      : x_(std::move(x)),
        w_(std::move(w)),
        begin_(begin),
        end_(end),
        sum_(std::move(sum)) {}
  const char* name() const override { return "linear_rows"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_.shape(), x_.dtype(), kernels.allocator()));
    Tensor dx_RK = AsMatrix(dx[0]);
    return BackwardInput(kernels, AsMatrix(dy), w_.Slice(begin_, end_), sum_,
                         dx_RK);
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    TROUPE_RETURN_IF_ERROR(EnsureWeightGrad(kernels, w_, grads[0]));
    Tensor db;
    for (WeightGrad& grad : grads) {
      if (!grad.wanted()) continue;
      if (!accumulate) TROUPE_RETURN_IF_ERROR(FillOthers(kernels, grad.grad));
    }
    Tensor dw = grads[0].grad.Slice(begin_, end_);
    if (grads.size() > 1 && grads[1].wanted()) {
      db = grads[1].grad.Slice(begin_, end_);
    }
    return kernels.LinearBackwardWeight(AsMatrix(x_), AsMatrix(dy), accumulate,
                                        dw, db);
  }

 private:
  // Fills the rows that this op does not read with zeros.
  absl::Status FillOthers(Kernels& kernels, const Tensor& grad) const {
    Tensor before = grad.Slice(0, begin_);
    Tensor after = grad.Slice(end_, grad.dim(0));
    TROUPE_RETURN_IF_ERROR(kernels.Fill(0.0, before));
    return kernels.Fill(0.0, after);
  }

  Tensor x_, w_;
  const std::int64_t begin_, end_;
  const SumOfInputs sum_;
};

absl::Status Forward(Kernels& kernels, const Tensor& x, const Tensor& w,
                     const Tensor& b, Tensor& y) {
  if (IsMatrix(x)) return kernels.LinearForward(x, w, b, y);
  Tensor y_RM = AsMatrix(y);
  return kernels.LinearForward(AsMatrix(x), w, b, y_RM);
}

// Whether the operands fit; otherwise fails the context.
bool CheckOperands(Context& ctx, const Tensor& x, const Tensor& w,
                   const Tensor& b) {
  if (x.shape().rank() < 1 || w.shape().rank() != 2 || x.dim(-1) != w.dim(1) ||
      x.dtype() != w.dtype()) {
    BadShapes(ctx, "linear takes x[..., K] and w[M, K] of one dtype, got ",
              Str(x), " and ", Str(w));
  } else if (!IsBiasOf(w, b)) {
    BadShapes(ctx, "linear takes a bias of ", DTypeName(w.dtype()), "[",
              w.dim(0), "], got ", Str(b));
  }
  return ctx.ok();
}

// How ranks share a product: a column product in parts of dx, a row product in
// parts of y.
struct Sharing {
  SumOfInputs dx;
  SharedBlocks y_blocks;           // blocks of K; null: one sum
  Collectives* y_peers = nullptr;  // null: y is whole
  // Whether the bias is added to the whole sum, instead of by the kernel, which
  // adds it first or last as extents of the rank's part suggest.
  bool bias_last = false;
};

// y = x w^T + b, by a kernel, or around the sum of parts.
absl::Status Forward(Kernels& kernels, const Tensor& x, const Tensor& w,
                     const Tensor& b, const Sharing& sharing, Tensor& y) {
  if (!sharing.bias_last) return Forward(kernels, x, w, b, y);
  if (sharing.y_blocks != nullptr) {
    Tensor y_RM = AsMatrix(y);
    TROUPE_RETURN_IF_ERROR(
        ForwardInBlocks(kernels, AsMatrix(x), w, *sharing.y_blocks, y_RM));
  } else {
    TROUPE_RETURN_IF_ERROR(Forward(kernels, x, w, Tensor(), y));
  }
  TROUPE_RETURN_IF_ERROR(AddUp(sharing.y_peers, y));
  return b.defined() ? kernels.BiasForward(b, y) : absl::OkStatus();
}

Tensor Product(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b,
               const Sharing& sharing) {
  if (!ctx.ok() || !CheckOperands(ctx, x, w, b)) return Tensor();
  Shape out = x.shape();
  out.set(out.rank() - 1, w.dim(0));
  Tensor y = ctx.Empty("linear", out, x.dtype());
  ctx.Note("linear", y, 2.0 * x.numel() * w.dim(0));
  if (!ctx.computes()) return y;
  const absl::Status status = Forward(ctx.kernels(), x, w, b, sharing, y);
  const std::array<Tensor, 3> inputs = {x, w, b};
  const int weights = b.defined() ? 2 : 1;
  return Finish(ctx, status, absl::MakeSpan(inputs).first(1 + weights), weights,
                y,
                [&] { return std::make_unique<LinearNode>(x, w, sharing.dx); });
}

}  // namespace

Tensor Linear(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b) {
  return Product(ctx, x, w, b, Sharing());
}

Tensor ColumnLinear(Context& ctx, const Tensor& x, const Tensor& w,
                    const Tensor& b, absl::string_view axis,
                    SharedBlocks blocks) {
  Sharing sharing;
  sharing.dx.peers = axis.empty() ? nullptr : PeersAlong(ctx, axis);
  sharing.bias_last = blocks != nullptr;
  sharing.dx.blocks = std::move(blocks);
  return Product(ctx, x, w, b, sharing);
}

Tensor RowLinear(Context& ctx, const Tensor& x, const Tensor& w,
                 const Tensor& b, absl::string_view axis, SharedBlocks blocks) {
  Sharing sharing;
  sharing.y_peers = axis.empty() ? nullptr : PeersAlong(ctx, axis);
  sharing.bias_last = sharing.y_peers != nullptr || blocks != nullptr;
  if (blocks != nullptr && w.defined()) {
    // dx has a column for each of the rank's inputs: its sums are not shared,
    // but a kernel for fewer columns may add up in another order.
    sharing.dx.blocks = std::make_shared<const DepthBlocks>(
        DepthBlocks{{TermRange{0, w.dim(0)}}});
  }
  sharing.y_blocks = std::move(blocks);
  return Product(ctx, x, w, b, sharing);
}

Tensor LinearRows(Context& ctx, const Tensor& x, const Tensor& w,
                  const Tensor& b, std::int64_t begin, std::int64_t end,
                  absl::string_view axis, SharedBlocks blocks) {
  Collectives* const peers = axis.empty() ? nullptr : PeersAlong(ctx, axis);
  if (!ctx.ok() || !CheckOperands(ctx, x, w, b)) return Tensor();
  if (begin < 0 || begin > end || end > w.dim(0)) {
    return BadShapes(ctx, "linear has no outputs [", begin, ", ", end, ") for ",
                     Str(w));
  }
  Shape out = x.shape();
  out.set(out.rank() - 1, end - begin);
  Tensor y = ctx.Empty("linear_rows", out, x.dtype());
  ctx.Note("linear_rows", y, 2.0 * x.numel() * (end - begin));
  if (!ctx.computes()) return y;
  Tensor y_RM = AsMatrix(y);
  Sharing sharing;
  sharing.dx = {blocks, peers};
  sharing.bias_last = blocks != nullptr;
  const absl::Status status =
      Forward(ctx.kernels(), AsMatrix(x), w.Slice(begin, end),
              b.defined() ? b.Slice(begin, end) : Tensor(), sharing, y_RM);
  const std::array<Tensor, 3> inputs = {x, w, b};
  const int weights = b.defined() ? 2 : 1;
  return Finish(
      ctx, status, absl::MakeSpan(inputs).first(1 + weights), weights, y, [&] {
        return std::make_unique<LinearRowsNode>(x, w, begin, end, sharing.dx);
      });
}

}  // namespace troupe::nn::ops
