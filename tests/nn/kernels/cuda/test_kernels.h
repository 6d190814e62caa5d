// The kernel set of a GPU for tests, on the emulation or on a GPU
// (tests/base/cuda/emulated/test_device.h). The host can also access its
// memory; a call returns when its work is done, and its status reports wrong
// data.
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

// Returns memory for the host and for kernels, filled with the poison of the
// current schedule.
std::shared_ptr<MemorySource> SharedMemory();

}  // namespace troupe::nn

#endif  // TESTS_NN_KERNELS_CUDA_TEST_KERNELS_H_
