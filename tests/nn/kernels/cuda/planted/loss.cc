// Compiles loss.cu and pair_losses.cu for the emulation, with bugs planted in
// headers that they include.

#include "tests/nn/kernels/cuda/planted/planted_reduce.h"
#include "tests/nn/kernels/cuda/planted/planted_softmax_row.h"
// Must come after the planted headers, whose include guards are those of the
// originals.
#include "nn/kernels/cuda/loss.cu"
#include "nn/kernels/cuda/pair_losses.cu"
