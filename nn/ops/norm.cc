#include "nn/ops/norm.h"

#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// A call of the kernels: x as samples of `places` places with `channels`
// channels each (nn/kernels/norm.h).
struct NormCall {
  const char* name;
  NormRule rule;
  std::int64_t samples, places, channels;

  Tensor Samples(const Tensor& t) const {
    return t.View({samples, places, channels});
  }
  // A weight, a bias or a gradient of theirs; may be undefined.
  Tensor Channels(const Tensor& t) const {
    return t.defined() ? t.View({channels}) : t;
  }
};

class NormNode final : public Node {
 public:
  NormNode(const NormCall& call, Tensor x, Tensor stats, Tensor w,
           bool has_bias)
      : call_(call),
        x_(std::move(x)),
        stats_(std::move(stats)),
        w_(std::move(w)),
        has_bias_(has_bias) {}
  const char* name() const override { return call_.name; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_.shape(), x_.dtype(), kernels.allocator()));
    Tensor samples = call_.Samples(dx[0]);
    return kernels.NormBackwardInput(call_.rule, call_.Samples(x_), stats_,
                                     call_.Channels(w_), call_.Samples(dy),
                                     samples);
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    Tensor dw, db;
    if (w_.defined()) dw = call_.Channels(grads.front().grad);
    if (has_bias_) db = call_.Channels(grads.back().grad);
    return kernels.NormBackwardWeight(call_.rule, call_.Samples(x_), stats_,
                                      call_.Samples(dy), accumulate, dw, db);
  }

 private:
  const NormCall call_;
  const Tensor x_, stats_, w_;
  const bool has_bias_;
};

// Whether `t` is undefined, or a weight of `shape` for `x`.
bool IsWeightOf(const Tensor& x, const Shape& shape, const Tensor& t) {
  return !t.defined() || (t.shape() == shape && t.dtype() == x.dtype());
}

Tensor Run(Context& ctx, const NormCall& call, const Tensor& x, const Tensor& w,
           const Tensor& b) {
  Tensor y = ctx.Empty(call.name, x.shape(), x.dtype());
  ctx.Note(call.name, y, 8.0 * x.numel());
  if (!ctx.computes()) return y;
  absl::StatusOr<Tensor> stats =
      Tensor::Create({call.samples, call.rule.groups, 2}, DType::kF64,
                     ctx.kernels().allocator());
  if (!stats.ok()) return ctx.Fail(stats.status());
  Tensor samples = call.Samples(y);
  const absl::Status status =
      ctx.kernels().NormForward(call.rule, call.Samples(x), call.Channels(w),
                                call.Channels(b), samples, *stats);
  absl::InlinedVector<Tensor, 3> inputs = {x};
  for (const Tensor& weight : {w, b}) {
    if (weight.defined()) inputs.push_back(weight);
  }
  return Finish(
      ctx, status, inputs, static_cast<int>(inputs.size()) - 1, y, [&] {
        return std::make_unique<NormNode>(call, x, *stats, w, b.defined());
      });
}

// Whether x's last axes are those of `normalized`, which has elements.
bool EndsWith(const Shape& x, const Shape& normalized) {
  const int extra = x.rank() - normalized.rank();
  if (extra < 0 || normalized.rank() < 1 || normalized.numel() < 1) {
    return false;
  }
  for (int axis = 0; axis < normalized.rank(); ++axis) {
    if (x[extra + axis] != normalized[axis]) return false;
  }
  return true;
}

// The norm of rows over the last axes of x, which are `normalized`.
NormCall RowsOf(const char* name, const Tensor& x, const Shape& normalized) {
  NormCall call{name, NormRule(), /*samples=*/1, /*places=*/1,
                normalized.numel()};
  for (int axis = 0; axis < x.shape().rank() - normalized.rank(); ++axis) {
    call.samples *= x.dim(axis);
  }
  return call;
}

bool IsEps(double eps) { return eps >= 0 && std::isfinite(eps); }

}  // namespace

Tensor LayerNorm(Context& ctx, const Tensor& x, const Shape& normalized,
                 const Tensor& w, const Tensor& b, double eps) {
  if (!ctx.ok()) return Tensor();
  if (!x.defined() || !EndsWith(x.shape(), normalized) || !IsEps(eps)) {
    return BadShapes(ctx, "layer_norm over ", normalized.ToString(),
                     " takes x[..., ", "those axes] and eps >= 0, got ", Str(x),
                     " and ", eps);
  }
  if (!IsWeightOf(x, normalized, w) || !IsWeightOf(x, normalized, b)) {
    return BadShapes(ctx, "layer_norm of ", Str(x),
                     " takes a weight and a bias of ", DTypeName(x.dtype()),
                     normalized.ToString(), ", got ", Str(w), " and ", Str(b));
  }
  NormCall call = RowsOf("layer_norm", x, normalized);
  call.rule.eps = eps;
  return Run(ctx, call, x, w, b);
}

Tensor RmsNorm(Context& ctx, const Tensor& x, const Tensor& w,
               std::optional<double> eps) {
  if (!ctx.ok()) return Tensor();
  const double added =
      eps.value_or(std::ldexp(1.0, x.dtype() == DType::kF64 ? -52 : -23));
  const bool has_axes = x.defined() && x.shape().rank() >= 1;
  const Shape normalized =
      w.defined() ? w.shape() : Shape{has_axes ? x.dim(-1) : 0};
  if (!has_axes || !EndsWith(x.shape(), normalized) ||
      !IsWeightOf(x, normalized, w) || !IsEps(added)) {
    return BadShapes(
        ctx, "rms_norm takes x[..., D], w[D] of one dtype and eps >= 0, got ",
        Str(x), ", ", Str(w), " and ", added);
  }
  NormCall call = RowsOf("rms_norm", x, normalized);
  call.rule.eps = added;
  call.rule.centered = false;
  return Run(ctx, call, x, w, Tensor());
}

Tensor GroupNorm(Context& ctx, const Tensor& x, std::int64_t groups,
                 const Tensor& w, const Tensor& b, double eps) {
  if (!ctx.ok()) return Tensor();
  if (x.shape().rank() < 2 || groups < 1 || x.dim(-1) < 1 ||
      x.dim(-1) % groups != 0 || !IsEps(eps)) {
    return BadShapes(ctx,
                     "group_norm takes x[N, ..., C], groups that divide C and "
                     "eps >= 0, got ",
                     Str(x), ", ", groups, " and ", eps);
  }
  const Shape channels = {x.dim(-1)};
  if (!IsWeightOf(x, channels, w) || !IsWeightOf(x, channels, b)) {
    return BadShapes(ctx, "group_norm of ", Str(x),
                     " takes a weight and a bias of ", DTypeName(x.dtype()),
                     channels.ToString(), ", got ", Str(w), " and ", Str(b));
  }
  std::int64_t places = 1;
  for (int axis = 1; axis + 1 < x.shape().rank(); ++axis) places *= x.dim(axis);
  if (places < 1) {
    return BadShapes(ctx, "group_norm takes samples with places, got ", Str(x));
  }
  const NormCall call = {"group_norm", NormRule{groups, /*centered=*/true, eps},
                         x.dim(0), places, x.dim(-1)};
  return Run(ctx, call, x, w, b);
}

}  // namespace troupe::nn::ops
