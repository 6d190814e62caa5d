// Declares names that the usage comments in nn/kernels/reference/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_NN_KERNELS_REFERENCE_H_
#define TESTS_USAGE_WORDS_NN_KERNELS_REFERENCE_H_

#include <cstdint>

#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::reference::usage {

namespace element_h {
extern Tensor a, b, y;
}

namespace offsets_h {
extern const StridedLoops loops;
extern const std::int64_t i;
extern float *a, *b, *y;
}  // namespace offsets_h

namespace reference_ops_h {
extern Kernels& ops;
}

}  // namespace troupe::nn::reference::usage

#endif  // TESTS_USAGE_WORDS_NN_KERNELS_REFERENCE_H_
