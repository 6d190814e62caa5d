// Norms within each sample, over images (N, H, W, C), sequences (N, T, D) or
// anything else with the features last.
//
//   Tensor y = ops::LayerNorm(ctx, x, Shape{512}, w, b);
//   y = ops::RmsNorm(ctx, y, w);
//   y = ops::GroupNorm(ctx, images, /*groups=*/32, w, b);
//
// With mean and var over the elements that are normalised together:
//     y = (x - mean) / sqrt(var + eps) * w + b
//
// LayerNorm (Ba et al. 2016, arXiv:1607.06450): over the last axes, which have
// the shape `normalized`; w, b of that shape. RmsNorm (Zhang and Sennrich 2019,
// arXiv:1910.07467): mean is 0 and var the mean of x^2, over as many of the
// last axes as w has, without w over the last one; no bias. GroupNorm (Wu and
// He 2018, arXiv:1803.08494): over the positions of x[N, ..., C] and the
// C / groups channels of each group; w, b [C].
//
// A residual connection and the norm behind it take one pass over memory, with
// the bits of Add() and the norm:
//
//   auto [sum, normed] = ops::AddLayerNorm(ctx, x, branch, Shape{512}, w, b);
//   Tensor z = ops::Add(ctx, sum, ops::Linear(ctx, normed, v, Tensor()));
//
// In backward each norm of rows adds its gradient to that of the residual
// connection around it, likewise in one pass.
//
// w and b may be undefined, or b alone. One dtype; statistics of 16-bit numbers
// are computed in f32 and f64. y has x's shape.
//
// Errors (sticky in ctx): kInvalidArgument with the shapes.

#ifndef NN_OPS_NORM_H_
#define NN_OPS_NORM_H_

#include <cstdint>
#include <optional>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

Tensor LayerNorm(Context& ctx, const Tensor& x, const Shape& normalized,
                 const Tensor& w, const Tensor& b, double eps = 1e-5);

// Holds x + branch, and a norm of it, over rows of the last axes.
struct SumAndNorm {
  Tensor sum, normed;
};
SumAndNorm AddLayerNorm(Context& ctx, const Tensor& x, const Tensor& branch,
                        const Shape& normalized, const Tensor& w,
                        const Tensor& b, double eps = 1e-5);

// Default of `eps` as in PyTorch: the distance from 1 to the next number of the
// type in which it is computed (2^-23 for f32 and 16 bits, 2^-52 for f64).
Tensor RmsNorm(Context& ctx, const Tensor& x, const Tensor& w,
               std::optional<double> eps = std::nullopt);

SumAndNorm AddRmsNorm(Context& ctx, const Tensor& x, const Tensor& branch,
                      const Tensor& w,
                      std::optional<double> eps = std::nullopt);

Tensor GroupNorm(Context& ctx, const Tensor& x, std::int64_t groups,
                 const Tensor& w, const Tensor& b, double eps = 1e-5);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_NORM_H_
