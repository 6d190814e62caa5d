// Compiles embedding.cu for the emulation, with bugs planted in it and in a
// header that it includes.

#include "tests/nn/kernels/cuda/planted/planted_reduce.h"
// Must come after the planted header, whose include guard is that of the
// original.
#include "tests/nn/kernels/cuda/planted/planted_embedding.inc"
