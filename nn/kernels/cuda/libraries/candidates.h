// Chooses the fastest of several algorithms from their measured times.
//
//   std::vector<CandidateTimes> times = {{8.1f, 8.0f}, {7.1f, 9.9f}, {}};
//   const int best = FastestCandidate(times);      // 1
//   const int runs = RunsPerSample(/*one_run_ms=*/0.01f);    // 20
//
// Uses no CUDA, so it is tested everywhere; measure.h takes the times.

#ifndef NN_KERNELS_CUDA_LIBRARIES_CANDIDATES_H_
#define NN_KERNELS_CUDA_LIBRARIES_CANDIDATES_H_

#include <vector>

namespace troupe::nn::cuda {

// Milliseconds of one run in each sample; empty if the candidate failed.
using CandidateTimes = std::vector<float>;

// Returns the candidate with the shortest sample, or -1 if all failed. The
// shortest sample is the one that other work on the machine disturbed least. A
// later candidate must be at least 2% faster than an earlier one, which the
// library ranks higher: noise then changes fewer choices, and with them fewer
// last bits.
int FastestCandidate(const std::vector<CandidateTimes>& times);

// Returns the number of runs between two CUDA events: enough that their
// resolution of half a microsecond matters little, few for slow runs.
int RunsPerSample(float one_run_ms);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CANDIDATES_H_
