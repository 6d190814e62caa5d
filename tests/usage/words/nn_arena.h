// Declares names that the usage comments in nn/arena/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_ARENA_H_
#define TESTS_USAGE_WORDS_NN_ARENA_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "nn/arena/bucket_gradients.h"
#include "nn/arena/owned_slices.h"
#include "nn/arena/page_pool.h"
#include "nn/arena/parameter_arena.h"
#include "nn/arena/released_values.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/device_queues.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::usage {

extern const std::uint64_t seed;
extern const Queue queue;

namespace bucket_gradients_h {
extern const BucketGradients::Options options;
extern const std::vector<ArenaRange> ranges;
extern const OwnedSlices owned;
void Fill(const Tensor& grads);
void ReduceScatter(const Tensor& grads);
void Update(const Tensor& grads);
}  // namespace bucket_gradients_h

namespace first_fill_h {
extern const std::vector<const Parameter*> parameters;
extern const Tensor momentum;
}  // namespace first_fill_h

namespace page_pool_h {
extern char* const block;
extern char* const another;
}  // namespace page_pool_h

namespace parameter_arena_h {
extern const std::vector<std::vector<Parameter*>> buckets;
extern Allocator& allocator;
extern ParameterArena::Options options;
extern std::unique_ptr<ParameterArena> arena;
extern const Tensor momentum;
}  // namespace parameter_arena_h

namespace released_values_h {
extern std::unique_ptr<ParameterArena> arena;
extern const SharePages share;
}  // namespace released_values_h

}  // namespace troupe::nn::usage

#endif  // TESTS_USAGE_WORDS_NN_ARENA_H_
