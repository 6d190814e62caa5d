#include "nn/ops/conv1d.h"

#include "nn/ops/conv_node.h"
#include "nn/ops/pad.h"

namespace troupe::nn::ops {
namespace {

bool Match(const Tensor& x, const Tensor& w, const Window1d& window,
           std::int64_t groups) {
  return x.shape().rank() == 3 && w.shape().rank() == 3 && groups >= 1 &&
         w.dim(1) >= 1 && x.dim(2) == groups * w.dim(1) &&
         w.dim(0) % groups == 0 && x.dtype() == w.dtype() &&
         w.dim(2) == window.kernel;
}

bool FitsSignals(const Window2d& row, const Tensor& x) {
  return row.kernel_w >= 1 && row.stride_w >= 1 && row.pad_w >= 0 &&
         row.dilation_w >= 1 && x.dim(1) + 2 * row.pad_w >= row.SpanW();
}

}  // namespace

Tensor Conv1d(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b,
              const Window1d& window, const ConvOptions& options) {
  if (!ctx.ok()) return Tensor();
  if (!Match(x, w, window, options.groups)) {
    return BadShapes(ctx, "conv1d in ", options.groups,
                     " groups takes x[N, L, C] and w[O, C / groups, K] of one "
                     "dtype, got ",
                     Str(x), " and ", Str(w));
  }
  if (!IsBiasOf(w, b)) {
    return BadShapes(ctx, "conv1d takes a bias of ", DTypeName(w.dtype()), "[",
                     w.dim(0), "], got ", Str(b));
  }
  if (options.same && window.stride != 1) {
    return BadShapes(ctx, "conv1d with same padding takes a stride of 1, got ",
                     window.stride);
  }
  const ConvBorder border(window.AsRow(), options);
  const Padding2d& p = border.padding;
  const Tensor signals =
      border.needed ? Pad1d(ctx, x, {p.left, p.right, p.mode}) : x;
  if (!ctx.ok()) return Tensor();
  if (!FitsSignals(border.window, signals)) {
    return BadShapes(ctx, "conv1d of ", window.kernel, " does not fit into ",
                     Str(x));
  }
  return Convolve(ctx, "conv1d", border.window, signals, w, b,
                  {x.dim(0), border.window.OutW(signals.dim(1)), w.dim(0)});
}

}  // namespace troupe::nn::ops
