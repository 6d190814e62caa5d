#include "nn/ops/norm.h"

#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/check.h"
#include "nn/ops/add.h"
#include "nn/ops/add_node.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

constexpr double kFlopsPerElement = 8;  // for a norm

// A call of the kernels: x as samples of `places` positions with `channels`
// channels each (nn/kernels/norm.h).
struct NormCall {
  const char* name;
  NormRule rule;
  std::int64_t samples, places, channels;

  // Whether each sample is one group at one position.
  bool is_of_rows() const { return rule.groups == 1 && places == 1; }
  Tensor Samples(const Tensor& t) const {
    return t.View({samples, places, channels});
  }
  // Views a weight, a bias or a gradient of them; `t` may be undefined.
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
  bool AddsInputGradient() const override { return call_.is_of_rows(); }
  absl::Status BackwardInputOnto(Kernels& kernels, const Tensor& dy,
                                 const Tensor& base, Tensor& dx) override {
    Tensor samples = call_.Samples(dx);
    return kernels.AddNormBackwardInput(call_.rule, call_.Samples(x_), stats_,
                                        call_.Channels(w_), call_.Samples(dy),
                                        call_.Samples(base), samples);
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

Tensor EmptyLike(Context& ctx, const char* op, const Tensor& x,
                 double flops_per_element) {
  Tensor y = ctx.Empty(op, x.shape(), x.dtype());
  ctx.Note(op, y, flops_per_element * static_cast<double>(x.numel()));
  return y;
}

absl::StatusOr<Tensor> StatsOf(Context& ctx, const NormCall& call) {
  return Tensor::Create({call.samples, call.rule.groups, 2}, DType::kF64,
                        ctx.kernels().allocator());
}

Tensor FinishNorm(Context& ctx, const absl::Status& status,
                  const NormCall& call, const Tensor& x, const Tensor& stats,
                  const Tensor& w, const Tensor& b, Tensor& y) {
  absl::InlinedVector<Tensor, 3> inputs = {x};
  for (const Tensor& weight : {w, b}) {
    if (weight.defined()) inputs.push_back(weight);
  }
  return Finish(
      ctx, status, inputs, static_cast<int>(inputs.size()) - 1, y, [&] {
        return std::make_unique<NormNode>(call, x, stats, w, b.defined());
      });
}

Tensor Run(Context& ctx, const NormCall& call, const Tensor& x, const Tensor& w,
           const Tensor& b) {
  Tensor y = EmptyLike(ctx, call.name, x, kFlopsPerElement);
  if (!ctx.computes()) return y;
  absl::StatusOr<Tensor> stats = StatsOf(ctx, call);
  if (!stats.ok()) return ctx.Fail(stats.status());
  Tensor samples = call.Samples(y);
  const absl::Status status =
      ctx.kernels().NormForward(call.rule, call.Samples(x), call.Channels(w),
                                call.Channels(b), samples, *stats);
  return FinishNorm(ctx, status, call, x, *stats, w, b, y);
}

// Runs the kernel that computes a + b and the norm of it, a and b of one shape
// and dtype. The tape is the same as after two ops.
SumAndNorm RunWithSum(Context& ctx, const NormCall& call, const Tensor& a,
                      const Tensor& b, const Tensor& w, const Tensor& bias) {
  Tensor sum = EmptyLike(ctx, "add", a, 1.0);
  Tensor y = EmptyLike(ctx, call.name, a, kFlopsPerElement);
  if (!ctx.computes()) return {sum, y};
  absl::StatusOr<Tensor> stats = StatsOf(ctx, call);
  if (!stats.ok()) return {Tensor(), ctx.Fail(stats.status())};
  Tensor sum_rows = call.Samples(sum), y_rows = call.Samples(y);
  const absl::Status status = ctx.kernels().AddNormForward(
      call.rule, call.Samples(a), call.Samples(b), call.Channels(w),
      call.Channels(bias), sum_rows, y_rows, *stats);
  sum = Finish(ctx, status, {a, b}, /*num_weights=*/0, sum,
               [&] { return std::make_unique<AddNode>(a.shape(), b.shape()); });
  if (!ctx.ok()) return {};
  y = FinishNorm(ctx, status, call, sum, *stats, w, bias, y);
  return {sum, y};
}

// Whether one kernel may compute a + b and the norm of it: it needs one shape
// and dtype.
bool AreOfOneKind(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() && a.shape() == b.shape() &&
         a.dtype() == b.dtype();
}

// Whether x's last axes are those of `normalized`, which is not empty.
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

// Returns the norm of rows over the last axes of x, which are `normalized`.
NormCall RowsOf(const char* name, const Tensor& x, const Shape& normalized) {
  NormCall call{name, NormRule(), /*samples=*/1, /*places=*/1,
                normalized.numel()};
  for (int axis = 0; axis < x.shape().rank() - normalized.rank(); ++axis) {
    call.samples *= x.dim(axis);
  }
  return call;
}

bool IsEps(double eps) { return eps >= 0 && std::isfinite(eps); }

// Returns the call for operands that fit; otherwise none, and fails the
// context.
std::optional<NormCall> LayerNormOf(Context& ctx, const Tensor& x,
                                    const Shape& normalized, const Tensor& w,
                                    const Tensor& b, double eps) {
  if (!ctx.ok()) return std::nullopt;
  if (!x.defined() || !EndsWith(x.shape(), normalized) || !IsEps(eps)) {
    BadShapes(ctx, "layer_norm over ", normalized.ToString(), " takes x[..., ",
              "those axes] and eps >= 0, got ", Str(x), " and ", eps);
    return std::nullopt;
  }
  if (!IsWeightOf(x, normalized, w) || !IsWeightOf(x, normalized, b)) {
    BadShapes(ctx, "layer_norm of ", Str(x), " takes a weight and a bias of ",
              DTypeName(x.dtype()), normalized.ToString(), ", got ", Str(w),
              " and ", Str(b));
    return std::nullopt;
  }
  NormCall call = RowsOf("layer_norm", x, normalized);
  call.rule.eps = eps;
  return call;
}

// The same for RMS norm.
std::optional<NormCall> RmsNormOf(Context& ctx, const Tensor& x,
                                  const Tensor& w, std::optional<double> eps) {
  if (!ctx.ok()) return std::nullopt;
  const double added =
      eps.value_or(std::ldexp(1.0, x.dtype() == DType::kF64 ? -52 : -23));
  const bool has_axes = x.defined() && x.shape().rank() >= 1;
  const Shape normalized =
      w.defined() ? w.shape() : Shape{has_axes ? x.dim(-1) : 0};
  if (!has_axes || !EndsWith(x.shape(), normalized) ||
      !IsWeightOf(x, normalized, w) || !IsEps(added)) {
    BadShapes(ctx,
              "rms_norm takes x[..., D], w[D] of one dtype and eps >= 0, got ",
              Str(x), ", ", Str(w), " and ", added);
    return std::nullopt;
  }
  NormCall call = RowsOf("rms_norm", x, normalized);
  call.rule.eps = added;
  call.rule.centered = false;
  return call;
}

}  // namespace

Tensor LayerNorm(Context& ctx, const Tensor& x, const Shape& normalized,
                 const Tensor& w, const Tensor& b, double eps) {
  const std::optional<NormCall> call =
      LayerNormOf(ctx, x, normalized, w, b, eps);
  return call ? Run(ctx, *call, x, w, b) : Tensor();
}

SumAndNorm AddLayerNorm(Context& ctx, const Tensor& x, const Tensor& branch,
                        const Shape& normalized, const Tensor& w,
                        const Tensor& b, double eps) {
  if (!AreOfOneKind(x, branch)) {
    const Tensor sum = Add(ctx, x, branch);
    return {sum, LayerNorm(ctx, sum, normalized, w, b, eps)};
  }
  const std::optional<NormCall> call =
      LayerNormOf(ctx, x, normalized, w, b, eps);
  return call ? RunWithSum(ctx, *call, x, branch, w, b) : SumAndNorm();
}

Tensor RmsNorm(Context& ctx, const Tensor& x, const Tensor& w,
               std::optional<double> eps) {
  const std::optional<NormCall> call = RmsNormOf(ctx, x, w, eps);
  return call ? Run(ctx, *call, x, w, Tensor()) : Tensor();
}

SumAndNorm AddRmsNorm(Context& ctx, const Tensor& x, const Tensor& branch,
                      const Tensor& w, std::optional<double> eps) {
  if (!AreOfOneKind(x, branch)) {
    const Tensor sum = Add(ctx, x, branch);
    return {sum, RmsNorm(ctx, sum, w, eps)};
  }
  const std::optional<NormCall> call = RmsNormOf(ctx, x, w, eps);
  return call ? RunWithSum(ctx, *call, x, branch, w, Tensor()) : SumAndNorm();
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
