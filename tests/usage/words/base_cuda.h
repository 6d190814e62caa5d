// Declares names that the usage comments in base/cuda/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_BASE_CUDA_H_
#define TESTS_USAGE_WORDS_BASE_CUDA_H_

#include <cstddef>
#include <cstdint>

namespace troupe::base::usage::cuda_status_h {
extern void* p;
extern const std::size_t bytes;
}  // namespace troupe::base::usage::cuda_status_h

#endif  // TESTS_USAGE_WORDS_BASE_CUDA_H_
