// The reference implementation of two_rank_step.h, and the inputs of both.

#include <cmath>
#include <cstring>

#include "tests/base/cuda/emulated/two_rank_step.h"

namespace emulated_cuda_test {

const char* NameOf(Bug bug) {
  switch (bug) {
    case Bug::kNone:
      return "none";
    case Bug::kNoWaitForGradient:
      return "no wait of comm for compute";
    case Bug::kNoWaitForParameter:
      return "no wait of the next step for the update";
    case Bug::kLossReadEarly:
      return "loss read before its event";
    case Bug::kFreedEarly:
      return "buffer freed too early";
    case Bug::kSlotReusedEarly:
      return "pinned slot reused too early";
    case Bug::kUsedBeforeMalloc:
      return "used before cudaMallocAsync";
    case Bug::kWrongEvent:
      return "wrong event recorded again";
    case Bug::kEventTooSoon:
      return "event recorded too soon";
    case Bug::kNullStream:
      return "update on the null stream";
    case Bug::kStackPointer:
      return "stack pointer captured";
    case Bug::kScalarByValue:
      return "scalar captured by value";
    case Bug::kSwappedOrder:
      return "order of collectives swapped";
    case Bug::kInProgressIgnored:
      return "ncclInProgress not awaited";
  }
  return "?";
}

float RateOf(int step) { return 0.01f + 0.003f * static_cast<float>(step); }

float BatchOf(int rank, int step, int i) {
  return std::sin(static_cast<float>(i * (rank + 1) + 7 * step));
}

bool StepResult::operator==(const StepResult& other) const {
  const auto same = [](const std::vector<float>& a,
                       const std::vector<float>& b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  };
  for (int r = 0; r < kRanks; ++r) {
    if (!same(parameters[r], other.parameters[r])) return false;
    if (!same(losses[r], other.losses[r])) return false;
  }
  return has_failed == other.has_failed;
}

namespace {

using Layer = std::vector<float>;  // [kN]

// Runs forward and backward of one rank; returns the loss.
float GradientsOf(int rank, int step, const std::vector<Layer>& w,
                  std::vector<Layer>* d_w) {
  std::vector<Layer> h(kBuckets + 1, Layer(kN));
  for (int i = 0; i < kN; ++i) h[0][i] = BatchOf(rank, step, i);
  for (int b = 0; b < kBuckets; ++b) {
    for (int i = 0; i < kN; ++i) {
      h[b + 1][i] = w[b][i] * h[b][i] + 0.5f * h[b][(i + 1) % kN];
    }
  }
  Layer d(kN);
  float loss = 0.0f;
  for (int i = 0; i < kN; ++i) {
    d[i] = h[kBuckets][i] - std::fabs(0.02f * static_cast<float>(i) - 0.5f);
    loss = i == 0 ? d[i] * d[i] : loss + d[i] * d[i];
  }
  d_w->assign(kBuckets, Layer(kN));
  for (int b = kBuckets - 1; b >= 0; --b) {
    Layer next(kN);
    for (int i = 0; i < kN; ++i) {
      (*d_w)[b][i] = d[i] * h[b][i];
      next[i] = w[b][i] * d[i] + 0.5f * d[(i + kN - 1) % kN];
    }
    d = next;
  }
  return loss;
}

}  // namespace

StepResult PlainLoop() {
  StepResult result;
  std::vector<Layer> w(kBuckets, Layer(kN));
  for (Layer& layer : w) {
    for (int i = 0; i < kN; ++i) {
      layer[i] = 0.25f + 0.001f * static_cast<float>(i);
    }
  }
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Layer> d_w[kRanks];
    for (int r = 0; r < kRanks; ++r) {
      result.losses[r].push_back(GradientsOf(r, step, w, &d_w[r]));
    }
    for (int b = 0; b < kBuckets; ++b) {
      for (int i = 0; i < kN; ++i) {
        w[b][i] = w[b][i] - RateOf(step) * (d_w[0][b][i] + d_w[1][b][i]);
      }
    }
  }
  for (auto& parameters : result.parameters) {
    for (const Layer& layer : w) {
      parameters.insert(parameters.end(), layer.begin(), layer.end());
    }
  }
  return result;
}

}  // namespace emulated_cuda_test
