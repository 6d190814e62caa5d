// Which of several algorithms to take, given how long they took.
//
//   std::vector<CandidateTimes> times = {{8.1f, 8.0f}, {7.1f, 9.9f}, {}};
//   const int best = FastestCandidate(times);      // 1
//   const int runs = RunsPerSample(/*one_run_ms=*/0.01f);    // 20
//
// No CUDA in here, so that it is tested everywhere; measure.h takes the times.

#ifndef NN_KERNELS_CUDA_LIBRARIES_CANDIDATES_H_
#define NN_KERNELS_CUDA_LIBRARIES_CANDIDATES_H_

#include <vector>

namespace troupe::nn::cuda {

// Milliseconds of one run in each sample; none where the candidate failed.
using CandidateTimes = std::vector<float>;

// The candidate whose quickest sample, which other work on the machine disturbs
// least, is best. An earlier one, which the library thought better, stands
// against one that is less than 2% quicker: so noise changes fewer choices, and
// with them fewer last bits. -1 where all failed.
int FastestCandidate(const std::vector<CandidateTimes>& times);

// How often a run is repeated between two events, so that their resolution of
// half a microsecond matters little and slow runs cost little.
int RunsPerSample(float one_run_ms);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CANDIDATES_H_
