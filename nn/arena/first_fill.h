// The first writes into the memory of an arena, by several threads: in a large
// model the system's work for fresh pages, and the random draws, take most of
// the time before the first step.
//
//   FillInitialValues(/*threads=*/2, seed, parameters);
//   FillZeros(/*threads=*/2, momentum);
//
// The numbers do not depend on the number of threads. The threads end before
// the call returns; the calling thread fills small memory by itself.

#ifndef NN_ARENA_FIRST_FILL_H_
#define NN_ARENA_FIRST_FILL_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn/autograd/parameter.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Fills each parameter's value by its initialiser, keyed by (seed, name). The
// piece of a parameter that is cut among ranks (nn/autograd/sharding.h) has the
// values that its elements have in the whole, bit for bit; its padding is 0.
void FillInitialValues(int threads, std::uint64_t seed,
                       absl::Span<const Parameter* const> parameters);

void FillZeros(int threads, const Tensor& tensor);

}  // namespace troupe::nn

#endif  // NN_ARENA_FIRST_FILL_H_
