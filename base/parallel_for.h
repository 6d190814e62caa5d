// A large job by several threads: what is done once, before the first step, by
// all cores that are idle then (filling parameters), and the decoding of a
// step's samples, beside the strands of the rank (docs/threads.md).
//
//   ParallelFor(/*threads=*/4, /*count=*/100, [&](std::int64_t i) {
//     results[i] = Work(i);        // touches nothing that another one does
//   });
//
// Returns when all is done. The caller's thread is one of them; with one
// thread or one piece there is no other. Where the system refuses a thread, the
// others do its part.

#ifndef BASE_PARALLEL_FOR_H_
#define BASE_PARALLEL_FOR_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace troupe::base {

void ParallelFor(int threads, std::int64_t count,
                 absl::FunctionRef<void(std::int64_t)> piece);

}  // namespace troupe::base

#endif  // BASE_PARALLEL_FOR_H_
