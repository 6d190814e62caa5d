// matrix_kernels.cu as it is compiled for the emulation, with bugs planted in
// it and in a header that it includes.

#include "tests/nn/kernels/cuda/planted/planted_transpose.h"
// Behind it.
#include "tests/nn/kernels/cuda/planted/planted_matrix_kernels.inc"
