// Attention of new tokens over the keys and values that a cache has of a text
// (nn/autograd/kv_cache.h), for PackedAttention() in a context with such a
// cache.
//
// qkv [N, T, (Hq + 2 Hkv) D] -> y [N, T, Hq D]. The keys and values of each
// sample's T tokens are copied into the cache at the places of the forward, and
// query t attends to all that is there of its text up to itself. A sample of no
// text has the result 0. In f32 on the CPU and the reference, a query has the
// bits of a forward of the whole text, since a kernel's sums depend on the keys
// that a query sees alone.
//
// Cost: a call of the kernel for each sample whose text begins here, and for
// each token of the others. Errors (sticky in ctx): those of the cache.
// kFailedPrecondition: the tape tracks qkv.

#ifndef NN_OPS_CACHED_ATTENTION_H_
#define NN_OPS_CACHED_ATTENTION_H_

#include <cstdint>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

// `qkv_heads`: qkv as [N, T, Hq + 2 Hkv, D].
Tensor CachedAttention(Context& ctx, const Tensor& qkv_heads,
                       std::int64_t heads, std::int64_t kv_heads, double scale);

}  // namespace troupe::nn::ops

#endif  // NN_OPS_CACHED_ATTENTION_H_
