#include "nn/ops/conv2d.h"

#include "nn/ops/conv_node.h"
#include "nn/ops/pad.h"

namespace troupe::nn::ops {
namespace {

// "" or " in 4 groups", and "C" or "C / 4".
std::string InGroups(std::int64_t groups) {
  return groups == 1 ? "" : absl::StrCat(" in ", groups, " groups");
}
std::string GroupC(std::int64_t groups) {
  return groups == 1 ? "C" : absl::StrCat("C / ", groups);
}

bool Match(const Tensor& x, const Tensor& w, const Window2d& window,
           std::int64_t groups) {
  return x.shape().rank() == 4 && w.shape().rank() == 4 && groups >= 1 &&
         w.dim(1) >= 1 && x.dim(3) == groups * w.dim(1) &&
         w.dim(0) % groups == 0 && x.dtype() == w.dtype() &&
         w.dim(2) == window.kernel_h && w.dim(3) == window.kernel_w;
}

}  // namespace

Tensor Conv2d(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b,
              const Window2d& window, const ConvOptions& options) {
  if (!ctx.ok()) return Tensor();
  const std::int64_t groups = options.groups;
  if (!Match(x, w, window, groups)) {
    return BadShapes(ctx, "conv2d", InGroups(groups),
                     " takes x[N, H, W, C] and w[O, ", GroupC(groups),
                     ", R, S] of one dtype, got ", Str(x), " and ", Str(w));
  }
  if (!IsBiasOf(w, b)) {
    return BadShapes(ctx, "conv2d takes a bias of ", DTypeName(w.dtype()), "[",
                     w.dim(0), "], got ", Str(b));
  }
  if (options.same && (window.stride_h != 1 || window.stride_w != 1)) {
    return BadShapes(ctx, "conv2d with same padding takes a stride of 1, got ",
                     window.stride_h, "x", window.stride_w);
  }
  const ConvBorder border(window, options);
  const Tensor images = border.needed ? Pad2d(ctx, x, border.padding) : x;
  if (!ctx.ok()) return Tensor();
  if (!Fits(border.window, images)) {
    return BadShapes(ctx, "conv2d of ", window.kernel_h, "x", window.kernel_w,
                     " does not fit into ", Str(x));
  }
  return Convolve(ctx, "conv2d", border.window, images, w, b,
                  {x.dim(0), border.window.OutH(images.dim(1)),
                   border.window.OutW(images.dim(2)), w.dim(0)});
}

}  // namespace troupe::nn::ops
