// Tests that a job that fails leaves the checkpoint of its last boundary: no
// work is lost that was good.

#include "tests/actors/sim/lost_work.h"

#include "gtest/gtest.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

TEST(LostWorkTest, AFailingStepCostsNoCheckpoint) {
  for (std::uint64_t seed : Seeds(60)) {
    ASSERT_EQ(LostByAFailingStep(seed), "") << ReplayCommand(seed);
  }
}

TEST(LostWorkTest, AFailingEvaluationCostsNoCheckpoint) {
  for (std::uint64_t seed : Seeds(60)) {
    ASSERT_EQ(LostByAFailingEvaluation(seed), "") << ReplayCommand(seed);
  }
}

}  // namespace
}  // namespace troupe::actors
