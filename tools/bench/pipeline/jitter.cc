#include "tools/bench/pipeline/jitter.h"

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "nn/random/philox.h"

namespace troupe::bench {
namespace {

constexpr int kSteps = 500;

// Returns a number in [0, 1) that depends on the arguments alone.
double Draw(int step, int stage, const pipeline::Action& action) {
  static const nn::RandomKey key(/*seed=*/1, nn::Purpose::kTest);
  const int kind = static_cast<int>(action.kind);
  nn::RandomStream draws(key, {static_cast<std::uint32_t>(step),
                               static_cast<std::uint32_t>(action.index),
                               static_cast<std::uint32_t>(16 * stage + kind)});
  return draws.UniformF32();
}

}  // namespace

absl::StatusOr<JitteredSteps> SimulateJitter(const pipeline::Plan& plan,
                                             const pipeline::StepCosts& costs,
                                             double jitter) {
  std::vector<pipeline::StepTable> tables;
  for (const pipeline::RankPlan& rank : plan.ranks) {
    tables.push_back(rank.train);
  }
  JitteredSteps steps;
  for (int i = 0; i < kSteps; ++i) {
    pipeline::StepCosts noisy = costs;
    noisy.factor = [&](int stage, const pipeline::Action& action) {
      return 1 + jitter * (2 * Draw(i, stage, action) - 1);
    };
    for (const bool arrival : {true, false}) {
      TROUPE_ASSIGN_OR_RETURN(
          const pipeline::SimulatedStep step,
          pipeline::SimulateStep(tables, plan.placement(), noisy,
                                 arrival ? pipeline::Dispatch::kArrival
                                         : pipeline::Dispatch::kStrict));
      (arrival ? steps.arrival : steps.strict) += step.seconds / kSteps;
    }
  }
  return steps;
}

}  // namespace troupe::bench
