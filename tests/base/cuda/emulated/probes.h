// Kernels that each test one feature which the emulation must implement as a
// GPU does.
//
//   absl::Status s = ProbeBlockVotes(/*true_count=*/100, out);
//
// Kernels run on the default stream. The comment of each function gives the
// shapes of its arrays.

#ifndef TESTS_BASE_CUDA_EMULATED_PROBES_H_
#define TESTS_BASE_CUDA_EMULATED_PROBES_H_

#include "absl/status/status.h"

namespace emulated_cuda_test {

constexpr int kShuffleProbes = 11;
constexpr int kVoteProbes = 12;
constexpr int kNumberProbes = 18;
constexpr int kIntegerProbes = 12;

// out: [kShuffleProbes, 32] and [kVoteProbes, 32], by one warp.
absl::Status ProbeShuffles(unsigned* out);
absl::Status ProbeVotes(unsigned* out);
// out: [64]. Two warps, whose halves diverge and converge again.
absl::Status ProbePartialMasks(int* out);
// out: [256]. Threads from `living` on return early.
absl::Status ProbeEarlyExit(int living, int* out);
// out: [3], the results of __syncthreads_count(), _and() and _or() over 256
// threads, of which `true_count` pass true.
absl::Status ProbeBlockVotes(int true_count, int* out);
// out: [12 blocks, 24 threads], block * 1000 + thread, of grid (2,3,2) and
// block (4,2,3).
absl::Status ProbeIndices(int* out);
// out: [kNumberProbes] and [kIntegerProbes].
absl::Status ProbeNumbers(float* out);
absl::Status ProbeIntegers(long long* out);
// Computes x[i] *= factor by a function object that the kernel gets by value.
absl::Status ProbeFunctor(int count, float factor, float* x);
// Counts each key below 16 into bins[key], in dynamic shared memory, and finds
// the largest key.
absl::Status ProbeHistogram(int count, const int* keys, unsigned* bins,
                            int* largest);
// Sums x in eight blocks of 64 threads; the last block to end adds their
// partial sums.
absl::Status ProbeLastBlock(int count, const float* x, float* partial,
                            unsigned* ticket, float* sum);

}  // namespace emulated_cuda_test

#endif  // TESTS_BASE_CUDA_EMULATED_PROBES_H_
