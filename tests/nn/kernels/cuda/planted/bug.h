// Lists the bugs that plant.py plants into copies of kernels; bugs.txt in this
// folder defines them.
//
//   PlantedBug<Bug>() = Bug::kWrongMask;        // planted_bug.h
//
// Threads: one.

#ifndef TESTS_NN_KERNELS_CUDA_PLANTED_BUG_H_
#define TESTS_NN_KERNELS_CUDA_PLANTED_BUG_H_

#include "tests/actors/sim/planted/planted_bug.h"

namespace troupe {

enum class Bug {
  kNone,
  // Reductions of a block: nn/kernels/cuda/kernel_parts/reduce.h.
  kNoBarrierAfterWrite,
  kWrongMask,
  // nn/kernels/cuda/embedding.cu.
  kNoBarrierBeforeReuse,
  // nn/kernels/cuda/kernel_parts/transpose.h.
  kTileReadTooEarly,
  // Sums of columns: nn/kernels/cuda/libraries/matrix_kernels.cu.
  kRowsReadTooEarly,
  kTailBeyondTheEnd,
  // nn/kernels/cuda/softmax_row.h.
  kRowNotWritten,
  kEnd,
};

}  // namespace troupe

#endif  // TESTS_NN_KERNELS_CUDA_PLANTED_BUG_H_
