// The first writes into the memory of an arena, by several threads: what the
// system takes for fresh pages, and the draws, are most of a large model's way
// to its first step.
//
//   FillInitialValues(/*threads=*/2, seed, parameters);
//   FillZeros(/*threads=*/2, momentum);
//
// The numbers do not depend on the number of threads. The threads end before
// the call returns; small memory is filled by the caller alone.

#ifndef NN_ARENA_FIRST_FILL_H_
#define NN_ARENA_FIRST_FILL_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn/autograd/parameter.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Each parameter's value by its initialiser, keyed by (seed, name).
void FillInitialValues(int threads, std::uint64_t seed,
                       absl::Span<const Parameter* const> parameters);

void FillZeros(int threads, const Tensor& tensor);

}  // namespace troupe::nn

#endif  // NN_ARENA_FIRST_FILL_H_
