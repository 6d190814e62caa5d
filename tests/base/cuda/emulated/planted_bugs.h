// Kernels with a bug each, and the right version of the same code, kNone.
//
//   absl::Status s = Shift(Bug::kNoSync, in, out, /*count=*/512);
//
// kInvalidArgument: the kernel has no such bug.

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

// out, [rows, 4]: four copies of the sum of a row's 256 values and squares.
absl::Status RowSums(Bug bug, const float* in, float* out, int rows);
// out[i] = in[i + 1], around the end of each 128 values; through shared memory.
absl::Status Shift(Bug bug, const float* in, float* out, int count);
// [64]: neighbours in a warp swap values through shared memory.
absl::Status WarpExchange(Bug bug, const float* in, float* out);
// [128]: reverses the values.
absl::Status Diverge(Bug bug, const float* in, float* out);
// *out += the sum of in, by float atomics: other bits in every order.
absl::Status FloatAtomicSum(const float* in, float* out, int count);

}  // namespace emulated_cuda_test

#endif  // TESTS_BASE_CUDA_EMULATED_PLANTED_BUGS_H_
