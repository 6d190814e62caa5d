// Compiles layout.cu for the emulation, with bugs planted in a header that it
// includes.

#include "tests/nn/kernels/cuda/planted/planted_transpose.h"
// Must come after the planted header, whose include guard is that of the
// original.
#include "nn/kernels/cuda/layout.cu"
