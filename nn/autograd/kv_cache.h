// The keys and values of a language model's attention for the tokens that it
// has seen: a forward then computes new tokens alone.
//
//   KvCache cache;
//   TextPlaces places;
//   places.texts = 1, places.context = 1024;
//   places.rows = {{/*text=*/0, /*past=*/0}};
//   TROUPE_RETURN_IF_ERROR(cache.Begin(places));
//   ctx.set_training(false);
//   ctx.set_kv_cache(&cache);
//   Tensor y = model(ctx, prompt);      // [1, 64] -> [1, 64, vocabulary]
//   places.rows[0].past = 64;
//   TROUPE_RETURN_IF_ERROR(cache.Begin(places));
//   Tensor z = model(ctx, next);        // [1, 1] -> [1, 1, vocabulary]
//
// The caller says with each forward how many tokens of a text are past: those
// are read, and whatever the cache has beyond them is overwritten. So a text
// ends, is cut back or begins anew without a call.
//
// Ops that depend on positions ask the context for the cache: PackedAttention()
// of one causal operand, AddPositions() and Rotary(). Whatever mixes positions
// in another way, such as a convolution or other attention, sees the new tokens
// alone, and its results are others than those of the whole text; nn/generate
// tests for it.
//
// Memory: for each call of attention in a forward, [texts, context, 2 Hkv D] of
// the model's dtype, from the kernels' allocator, at its first forward; after
// that a forward allocates nothing here. GPT-2 of 124M parameters, 1024 tokens,
// f32: 72 MiB a text. Threads: one at a time.

#ifndef NN_AUTOGRAD_KV_CACHE_H_
#define NN_AUTOGRAD_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"
#include "nn/tensor/text_places.h"

namespace troupe::nn {

class KvCache {
 public:
  // Begins a forward whose samples are `places.rows`. Other numbers of texts or
  // tokens than before free the memory.
  //   kInvalidArgument: a text or a number of tokens is out of range.
  absl::Status Begin(const TextPlaces& places);

  const TextPlaces& places() const { return places_; }

  // Returns the memory of the next attention of this forward,
  // [texts, context, heads, width], for x [rows, tokens, ...].
  //   kInvalidArgument: x has another number of rows than the forward, or more
  //     tokens than the context; or the attention is another one than in the
  //     forward before.
  absl::StatusOr<Tensor> Next(const Tensor& x, std::int64_t heads,
                              std::int64_t width, Allocator& allocator);
  //   kInvalidArgument: x [rows, tokens, ...] does not fit the forward.
  absl::Status CheckRows(const Tensor& x) const;

  std::size_t bytes() const;

 private:
  TextPlaces places_;
  std::vector<Tensor> layers_;  // ordered by their use in a forward
  std::size_t next_ = 0;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_KV_CACHE_H_
