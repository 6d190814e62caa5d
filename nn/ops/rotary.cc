#include "nn/ops/rotary.h"

#include <utility>

#include "nn/autograd/kv_cache.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class RotaryNode final : public Node {
 public:
  RotaryNode(const RotaryRule& rule, Shape heads)
      : rule_(rule), heads_(std::move(heads)) {}
  const char* name() const override { return "rotary"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(dy.shape(), dy.dtype(), kernels.allocator()));
    RotaryRule back = rule_;
    back.inverse = true;
    Tensor to = dx[0].View(heads_);
    return kernels.Rotary(back, dy.View(heads_), to);
  }

 private:
  const RotaryRule rule_;
  const Shape heads_;
};

// Views x as [N, T, H, D]; undefined if it does not fit.
Tensor AsHeads(const Tensor& x, std::int64_t width) {
  if (x.shape().rank() == 4) return x;
  if (x.shape().rank() != 3 || width < 1 || x.dim(2) % width != 0) {
    return Tensor();
  }
  return x.View({x.dim(0), x.dim(1), x.dim(2) / width, width});
}

// Turns each sample from the position of its text on.
absl::Status RotaryInTexts(Kernels& kernels, const KvCache& cache,
                           const RotaryRule& rule, const Tensor& x, Tensor& y) {
  TROUPE_RETURN_IF_ERROR(cache.CheckRows(x));
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    RotaryRule own = rule;
    own.first += cache.places().rows[n].past;
    Tensor y_n = y.Slice(n, n + 1);
    TROUPE_RETURN_IF_ERROR(kernels.Rotary(own, x.Slice(n, n + 1), y_n));
  }
  return absl::OkStatus();
}

}  // namespace

Tensor Rotary(Context& ctx, const Tensor& x, const RotaryOptions& options) {
  if (!ctx.ok()) return Tensor();
  const Tensor heads = AsHeads(x, options.head_width);
  if (!heads.defined()) {
    return BadShapes(ctx,
                     "rotary takes x[N, T, H, D], or x[N, T, H D] and the "
                     "width of a head, got ",
                     Str(x), " and ", options.head_width);
  }
  RotaryRule rule;
  rule.base = options.base;
  rule.first = options.first;
  rule.interleaved = options.interleaved;
  rule.width = options.width > 0 ? options.width : heads.dim(3);
  rule.heads = options.heads > 0 ? options.heads : heads.dim(2);
  if (rule.width % 2 != 0 || rule.width > heads.dim(3) ||
      rule.heads > heads.dim(2) || rule.first < 0 || !(rule.base > 0)) {
    return BadShapes(ctx,
                     "rotary turns an even number of a head's elements by "
                     "positions from 0 on, got ",
                     rule.width, " elements of ", rule.heads,
                     " heads from position ", rule.first, " with base ",
                     rule.base, " for ", Str(heads));
  }
  Tensor y = ctx.Empty("rotary", x.shape(), x.dtype());
  ctx.Note("rotary", y, 3.0 * y.numel());
  if (!ctx.computes()) return y;
  Tensor to = y.View(heads.shape());
  const absl::Status status =
      ctx.kv_cache() == nullptr
          ? ctx.kernels().Rotary(rule, heads, to)
          : RotaryInTexts(ctx.kernels(), *ctx.kv_cache(), rule, heads, to);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    return std::make_unique<RotaryNode>(rule, heads.shape());
  });
}

}  // namespace troupe::nn::ops
