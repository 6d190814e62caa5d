// Tests the job in threads, as it will run, and simulated in one thread and
// virtual time, under many interleavings.

#include "wide_and_deep.h"

#include <cstdint>

#include "actors/sim/recorder.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"

namespace outside {
namespace {

using namespace troupe::actors;

TEST(WideAndDeep, IsLearned) {
  const auto result = RunJob(MakeJob(/*ranks=*/2).value());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->evaluation.accuracy, 0.85);
}

TEST(WideAndDeep, EveryInterleavingGivesTheSameBits) {
  JobSpec spec = MakeJob(/*ranks=*/4).value();
  spec.test = nullptr;
  spec.steps = 3;
  double first_loss = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    SimulationOptions options;
    options.seed = seed;
    Simulation simulation(spec, options);
    const auto result = simulation.Run();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(CheckInvariants(simulation.recorder(), simulation.plan(),
                                /*first_step=*/0, spec.steps)
                    .ok());
    if (seed == 0) first_loss = result->loss;
    EXPECT_EQ(result->loss, first_loss) << "not close: equal";
  }
}

}  // namespace
}  // namespace outside
