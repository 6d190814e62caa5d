// One kernel for each thing that the emulation must do as a GPU does it.
//
//   absl::Status s = ProbeBlockVotes(/*true_count=*/100, out);
//
// Sizes: each function says what its arrays hold. Default stream.

#ifndef TESTS_BASE_CUDA_EMULATED_PROBES_H_
#define TESTS_BASE_CUDA_EMULATED_PROBES_H_

#include "absl/status/status.h"

namespace emulated_cuda_test {

constexpr int kShuffleProbes = 11;
constexpr int kVoteProbes = 12;
constexpr int kNumberProbes = 18;
constexpr int kIntegerProbes = 12;

// [kShuffleProbes, 32] and [kVoteProbes, 32]: one warp.
absl::Status ProbeShuffles(unsigned* out);
absl::Status ProbeVotes(unsigned* out);
// [64]: the halves of two warps go separate ways and come back.
absl::Status ProbePartialMasks(int* out);
// [256]: threads beyond `living` return early.
absl::Status ProbeEarlyExit(int living, int* out);
// [3]: count, and, or over 256 threads, of which `true_count` say yes.
absl::Status ProbeBlockVotes(int true_count, int* out);
// [12 blocks, 24 threads]: block * 1000 + thread, of grid (2,3,2) and block
// (4,2,3).
absl::Status ProbeIndices(int* out);
// [kNumberProbes] and [kIntegerProbes].
absl::Status ProbeNumbers(float* out);
absl::Status ProbeIntegers(long long* out);
// x[i] *= factor, by a function object that the kernel gets by value.
absl::Status ProbeFunctor(int count, float factor, float* x);
// bins[key] for each key below 16, and the largest key; counted in dynamic
// shared memory.
absl::Status ProbeHistogram(int count, const int* keys, unsigned* bins,
                            int* largest);
// The sum of x by eight blocks of 64 threads, added up by the last to end.
absl::Status ProbeLastBlock(int count, const float* x, float* partial,
                            unsigned* ticket, float* sum);

}  // namespace emulated_cuda_test

#endif  // TESTS_BASE_CUDA_EMULATED_PROBES_H_
