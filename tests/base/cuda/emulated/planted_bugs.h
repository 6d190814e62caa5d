// Kernels with planted bugs; kNone runs the correct version of the same code.
//
//   absl::Status s = Shift(Bug::kNoSync, in, out, /*count=*/512);
//
// Errors: kInvalidArgument, if the kernel has no such bug.

#ifndef TESTS_BASE_CUDA_EMULATED_PLANTED_BUGS_H_
#define TESTS_BASE_CUDA_EMULATED_PLANTED_BUGS_H_

#include "absl/status/status.h"

namespace emulated_cuda_test {

enum class Bug {
  kNone,
  // RowSums.
  kNoSyncAfterWrite,
  kNoSyncBeforeReuse,
  kMaskLacksTheCaller,
  kMaskNamesAbsentLanes,
  kReadsOutsideMask,
  // Shift.
  kNoSync,
  kStaticUninitialised,
  kDynamicUninitialised,
  kWritesPastGlobal,
  kReadsPastGlobal,
  kWritesPastDynamic,
  kWritesPastStatic,
  kSkipsAnOutput,
  kSpillsToNextBlock,
  // WarpExchange.
  kNoSyncwarp,
  kSyncwarpAcrossWarps,
  // Diverge.
  kBarrierInOneBranch,
  kTwoBarriers,
  kBarrierAgainstShuffle,
  kUnevenLoop,
};

// out: [rows, 4], four copies of the sum of a row's 256 values and squares.
absl::Status RowSums(Bug bug, const float* in, float* out, int rows);
// Rotates each 128 values by one, through shared memory: out[i] = in[i + 1].
absl::Status Shift(Bug bug, const float* in, float* out, int count);
// Arrays: [64]. Neighbours in a warp swap values through shared memory.
absl::Status WarpExchange(Bug bug, const float* in, float* out);
// Arrays: [128]. Reverses the values.
absl::Status Diverge(Bug bug, const float* in, float* out);
// Adds the sum of `in` to *out by float atomics: the bits depend on their
// order.
absl::Status FloatAtomicSum(const float* in, float* out, int count);

}  // namespace emulated_cuda_test

#endif  // TESTS_BASE_CUDA_EMULATED_PLANTED_BUGS_H_
