// loss.cu as it is compiled for the emulation, with bugs planted in
// headers that it includes.

#include "tests/nn/kernels/cuda/planted/planted_reduce.h"
#include "tests/nn/kernels/cuda/planted/planted_softmax_row.h"
// Behind them.
#include "nn/kernels/cuda/loss.cu"
