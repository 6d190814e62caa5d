#include "nn/ops/linear.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "nn/ops/op_util.h"
#include "nn/ops/rank_sum.h"

namespace troupe::nn::ops {
namespace {

class LinearNode final : public Node {
 public:
  // `peers`: the ranks that have the other parts of dx; null if it is whole.
  LinearNode(Tensor x, Tensor w, Collectives* peers)
      : x_(std::move(x)), w_(std::move(w)), peers_(peers) {}
  const char* name() const override { return "linear"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_.shape(), x_.dtype(), kernels.allocator()));
    Tensor dx_RK = IsMatrix(x_) ? dx[0] : AsMatrix(dx[0]);
    TROUPE_RETURN_IF_ERROR(kernels.LinearBackwardInput(
        IsMatrix(x_) ? dy : AsMatrix(dy), w_, dx_RK));
    return AddUp(peers_, dx[0]);
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
  Collectives* const peers_;
};

// The node of a product with rows [begin, end) of a weight alone.
class LinearRowsNode final : public Node {
 public:
  LinearRowsNode(Tensor x, Tensor w, std::int64_t begin, std::int64_t end,
                 Collectives* peers)
      : x_(std::move(x)),
        w_(std::move(w)),
        begin_(begin),
        end_(end),
        peers_(peers) {}
  const char* name() const override { return "linear_rows"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_.shape(), x_.dtype(), kernels.allocator()));
    Tensor dx_RK = AsMatrix(dx[0]);
    TROUPE_RETURN_IF_ERROR(kernels.LinearBackwardInput(
        AsMatrix(dy), w_.Slice(begin_, end_), dx_RK));
    return AddUp(peers_, dx[0]);
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
  Collectives* const peers_;
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

// Peers of a product that ranks share: of a column product, those that have the
// other parts of dx; of a row product, of y.
struct Peers {
  Collectives* of_dx = nullptr;
  Collectives* of_y = nullptr;
};

// y = x w^T + b, by a kernel, or around the sum over the peers.
absl::Status Forward(Kernels& kernels, const Tensor& x, const Tensor& w,
                     const Tensor& b, Collectives* peers, Tensor& y) {
  if (peers == nullptr) return Forward(kernels, x, w, b, y);
  TROUPE_RETURN_IF_ERROR(Forward(kernels, x, w, Tensor(), y));
  TROUPE_RETURN_IF_ERROR(AddUp(peers, y));
  return b.defined() ? kernels.BiasForward(b, y) : absl::OkStatus();
}

Tensor Product(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b,
               const Peers& peers) {
  if (!ctx.ok() || !CheckOperands(ctx, x, w, b)) return Tensor();
  Shape out = x.shape();
  out.set(out.rank() - 1, w.dim(0));
  Tensor y = ctx.Empty("linear", out, x.dtype());
  ctx.Note("linear", y, 2.0 * x.numel() * w.dim(0));
  if (!ctx.computes()) return y;
  const absl::Status status = Forward(ctx.kernels(), x, w, b, peers.of_y, y);
  const std::array<Tensor, 3> inputs = {x, w, b};
  const int weights = b.defined() ? 2 : 1;
  return Finish(
      ctx, status, absl::MakeSpan(inputs).first(1 + weights), weights, y,
      [&] { return std::make_unique<LinearNode>(x, w, peers.of_dx); });
}

}  // namespace

Tensor Linear(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b) {
  return Product(ctx, x, w, b, Peers());
}

Tensor ColumnLinear(Context& ctx, const Tensor& x, const Tensor& w,
                    const Tensor& b, absl::string_view axis) {
  Peers peers;
  peers.of_dx = PeersAlong(ctx, axis);
  return Product(ctx, x, w, b, peers);
}

Tensor RowLinear(Context& ctx, const Tensor& x, const Tensor& w,
                 const Tensor& b, absl::string_view axis) {
  Peers peers;
  peers.of_y = PeersAlong(ctx, axis);
  return Product(ctx, x, w, b, peers);
}

Tensor LinearRows(Context& ctx, const Tensor& x, const Tensor& w,
                  const Tensor& b, std::int64_t begin, std::int64_t end,
                  absl::string_view axis) {
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
  const absl::Status status = ctx.kernels().LinearForward(
      AsMatrix(x), w.Slice(begin, end),
      b.defined() ? b.Slice(begin, end) : Tensor(), y_RM);
  const std::array<Tensor, 3> inputs = {x, w, b};
  const int weights = b.defined() ? 2 : 1;
  return Finish(
      ctx, status, absl::MakeSpan(inputs).first(1 + weights), weights, y, [&] {
        return std::make_unique<LinearRowsNode>(x, w, begin, end, peers);
      });
}

}  // namespace troupe::nn::ops
