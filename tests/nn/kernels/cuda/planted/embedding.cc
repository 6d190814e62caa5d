// embedding.cu as it is compiled for the emulation, with bugs planted in it and
// in a header that it includes.

#include "tests/nn/kernels/cuda/planted/planted_reduce.h"
// Behind it.
#include "tests/nn/kernels/cuda/planted/planted_embedding.inc"
