// Rotary position embedding (Su et al. 2021, arXiv:2104.09864): rotates pairs
// of elements of a head by angles that grow with the position, so that the
// product of a query and a key depends on their distance.
//
//   Tensor y = ops::Rotary(ctx, q);                  // q [N, T, H, D]
//   // Queries and keys of a packed product (ops::PackedAttention), 8 + 2 heads
//   // of 64; the 2 heads of values stay:
//   ops::RotaryOptions options;
//   options.head_width = 64;
//   options.heads = 8 + 2;
//   Tensor z = ops::Rotary(ctx, qkv, options);       // [N, T, 12 * 64]
//
// With (a, b) pair i of position t and angle = (first + t) base^(-2 i / width):
//
//     a' = a cos(angle) - b sin(angle)     b' = b cos(angle) + a sin(angle)
//
// A sample begins after the past tokens of its text, if the context has a
// key-value cache (nn/autograd/kv_cache.h).
//
// x [N, T, H, D], or [N, T, H D] with options.head_width -> y, of the same
// shape. Backward rotates by the negative angles.
// Errors (sticky in ctx): kInvalidArgument with the shapes.

#ifndef NN_OPS_ROTARY_H_
#define NN_OPS_ROTARY_H_

#include <cstdint>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

struct RotaryOptions {
  double base = 10000;
  // Position of the first element of each sample.
  std::int64_t first = 0;
  // Whether the pairs are 2 i and 2 i + 1, as in the paper; otherwise i and
  // i + width / 2, as in GPT-NeoX and Llama.
  bool interleaved = false;
  // Number of elements of a head, from its first, that are rotated; 0: all.
  std::int64_t width = 0;
  // Number of heads, from the first, that are rotated; 0: all.
  std::int64_t heads = 0;
  // D, if x is of rank 3.
  std::int64_t head_width = 0;
};

Tensor Rotary(Context& ctx, const Tensor& x, const RotaryOptions& options = {});

}  // namespace troupe::nn::ops

#endif  // NN_OPS_ROTARY_H_
