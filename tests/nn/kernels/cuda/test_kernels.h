// The kernel set of a GPU in tests, where kernels run: on the emulation or on a
// GPU (tests/base/cuda/emulated/test_device.h). Its memory is one that
// the host reads as well; a call returns when its work is done, and wrong data
// is the status of the call.
//
//   std::unique_ptr<Kernels> kernels = CreateTestKernels();
//   status = kernels->ReluForward(x, y);

#ifndef TESTS_NN_KERNELS_CUDA_TEST_KERNELS_H_
#define TESTS_NN_KERNELS_CUDA_TEST_KERNELS_H_

#include <memory>

#include "nn/kernels/kernels.h"
#include "nn/tensor/memory_source.h"

namespace troupe::nn {

std::unique_ptr<Kernels> CreateTestKernels();

// Memory that the host and kernels use, full of the current schedule's poison.
std::shared_ptr<MemorySource> SharedMemory();

}  // namespace troupe::nn

#endif  // TESTS_NN_KERNELS_CUDA_TEST_KERNELS_H_
