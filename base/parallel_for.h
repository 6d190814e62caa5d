// Runs a loop on several threads: for work that is done once, before the first
// step, by all idle cores (filling parameters), and for the decoding of a
// step's samples, beside the strands of the rank (docs/threads.md).
//
//   ParallelFor(/*threads=*/4, /*count=*/100, [&](std::int64_t i) {
//     results[i] = Work(i);        // no access to data of another piece
//   });
//
// Returns when all is complete. The caller's thread is one of the threads; with
// one thread or one piece it is the only one. If the system refuses a thread,
// the others process its part.

#ifndef BASE_PARALLEL_FOR_H_
#define BASE_PARALLEL_FOR_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace troupe::base {

void ParallelFor(int threads, std::int64_t count,
                 absl::FunctionRef<void(std::int64_t)> piece);

}  // namespace troupe::base

#endif  // BASE_PARALLEL_FOR_H_
