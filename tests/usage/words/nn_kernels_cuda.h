// What usage in nn/kernels/cuda/ leaves to its reader.

#ifndef TESTS_USAGE_WORDS_NN_KERNELS_CUDA_H_
#define TESTS_USAGE_WORDS_NN_KERNELS_CUDA_H_

#include <cstdint>
#include <iostream>

// Where the CUDA toolkit is there.
#ifdef NN_KERNELS_CUDA_SGD_UPDATE_H_
namespace troupe::nn::usage::sgd_update_h {
extern const SgdRule rule;
extern const std::int64_t count;
extern const StepScalars* scalars;
extern float *grad, *param, *momentum;
extern cudaStream_t stream;
}  // namespace troupe::nn::usage::sgd_update_h
#endif

#endif  // TESTS_USAGE_WORDS_NN_KERNELS_CUDA_H_
