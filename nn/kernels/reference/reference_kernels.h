// The kernel set "reference": plain loops that take every floating dtype,
// compute in f64 and round once at the store. The oracle of the op tests, and a
// second backend that shows that the interface fits several. Slow by design.
//
//   std::unique_ptr<Kernels> oracle = CreateReferenceKernels();

#ifndef NN_KERNELS_REFERENCE_REFERENCE_KERNELS_H_
#define NN_KERNELS_REFERENCE_REFERENCE_KERNELS_H_

#include <memory>

#include "nn/kernels/kernels.h"

namespace troupe::nn {

std::unique_ptr<Kernels> CreateReferenceKernels();

}  // namespace troupe::nn

#endif  // NN_KERNELS_REFERENCE_REFERENCE_KERNELS_H_
