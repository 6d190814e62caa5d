// layout.cu as it is compiled for the emulation, with bugs planted in
// a header that it includes.

#include "tests/nn/kernels/cuda/planted/planted_transpose.h"
// Behind them.
#include "nn/kernels/cuda/layout.cu"
