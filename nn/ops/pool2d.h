// Max and average pooling over windows of an image, and adaptive average
// pooling to a given number of windows.
//
//   Tensor y = ops::MaxPool2d(ctx, x, window);       // x, y: (N, H, W, C)
//   Tensor z = ops::AvgPool2d(ctx, x, window, {/*ceil_mode=*/true});
//   Tensor mean = ops::AdaptiveAvgPool2d(ctx, x, 1, 1);  // of each channel
//
// The same as torch.nn.functional.max_pool2d, avg_pool2d and
// adaptive_avg_pool2d, whose window (p, q) of (P, Q) has the rows
// [floor(p H / P), ceil((p + 1) H / P)). Windows have no dilation. Errors
// (sticky in ctx): kInvalidArgument with the shapes; also for a padding above
// half the kernel, as in PyTorch.

#ifndef NN_OPS_POOL2D_H_
#define NN_OPS_POOL2D_H_

#include <cstdint>

#include "nn/autograd/context.h"
#include "nn/ops/pool_options.h"

namespace troupe::nn::ops {

Tensor MaxPool2d(Context& ctx, const Tensor& x, const Window2d& window,
                 const MaxPoolOptions& options = {});
Tensor AvgPool2d(Context& ctx, const Tensor& x, const Window2d& window,
                 const AvgPoolOptions& options = {});
// x [N, H, W, C] -> y [N, rows, columns, C]
Tensor AdaptiveAvgPool2d(Context& ctx, const Tensor& x, std::int64_t rows,
                         std::int64_t columns);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_POOL2D_H_
