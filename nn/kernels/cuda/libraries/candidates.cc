#include "nn/kernels/cuda/libraries/candidates.h"

#include <algorithm>
#include <cstddef>

namespace troupe::nn::cuda {

int FastestCandidate(const std::vector<CandidateTimes>& times) {
  constexpr float kWorthwhile = 0.98f;
  int best = -1;
  float best_ms = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].empty()) continue;
    const float ms = *std::min_element(times[i].begin(), times[i].end());
    if (best < 0 || ms < kWorthwhile * best_ms) {
      best = static_cast<int>(i);
      best_ms = ms;
    }
  }
  return best;
}

int RunsPerSample(float one_run_ms) {
  constexpr float kSampleMs = 0.2f;
  constexpr int kRunsMax = 20;
  if (!(one_run_ms > kSampleMs / kRunsMax)) return kRunsMax;
  return std::max(1, static_cast<int>(kSampleMs / one_run_ms));
}

}  // namespace troupe::nn::cuda
