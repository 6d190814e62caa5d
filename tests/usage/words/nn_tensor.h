// Declares names that the usage comments in nn/tensor/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_TENSOR_H_
#define TESTS_USAGE_WORDS_NN_TENSOR_H_

#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::usage {
extern Kernels& kernels;
extern Allocator& allocator;

namespace tensor_block_h {
extern Allocator& host_allocator;
extern const Tensor inputs, targets;
}  // namespace tensor_block_h
}  // namespace troupe::nn::usage

#endif  // TESTS_USAGE_WORDS_NN_TENSOR_H_
