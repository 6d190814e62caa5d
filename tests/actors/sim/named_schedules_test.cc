// Every schedule that has a name, on simulated ranks: the bits of one rank with
// the same micro-batches, and never more activations than its table has.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

// Sixteen modules, of which a linear layer and a ReLU make an eighth; two
// samples a micro-batch.
JobSpec EightLayers(int dp, int pp) {
  JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kExact, /*steps=*/2});
  spec.model = [] {
    const nn::Linear::Options f64 = {/*bias=*/true, nn::DType::kF64};
    auto model = std::make_unique<nn::Sequential>();
    for (int layer = 0; layer < 8; ++layer) {
      model->Append<nn::Linear>(4, layer == 7 ? 2 : 4, f64);
      model->Append<nn::ReLU>();
    }
    return model;
  };
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  spec.plan.micro_batch_size = pp == 4 || dp == 2 ? 3 : 6;
  return spec;
}

// The job's pipeline, cut evenly.
JobSpec Scheduled(const pipeline::NamedSchedule& schedule, JobSpec spec) {
  spec.plan.virtual_stages = schedule.chunks == 0 ? 2 : schedule.chunks;
  const absl::Status set = pipeline::SetSchedule(schedule.name, spec.plan);
  EXPECT_TRUE(set.ok()) << schedule.name << ": " << set;
  const int stages = static_cast<int>(spec.plan.placement.size());
  for (int stage = 1; stage < stages; ++stage) {
    spec.plan.cuts.emplace_back(stage * 16 / stages);
  }
  return spec;
}

SimulatedRun RunWith(std::uint64_t seed, const JobSpec& spec) {
  SimulationOptions options;
  options.seed = seed;
  return Simulate(spec, options);
}

class NamedSchedulesTest
    : public testing::TestWithParam<pipeline::NamedSchedule> {};

TEST_P(NamedSchedulesTest, GiveTheBitsOfOneRankUnderEverySeed) {
  for (const int pp : {2, 4}) {
    JobSpec alone = EightLayers(1, pp);
    alone.plan.mesh = pipeline::Mesh();
    const SimulatedRun one = RunWith(/*seed=*/0, alone);
    ASSERT_TRUE(one.result.ok()) << one.result.status();
    JobSpec spec = Scheduled(GetParam(), EightLayers(1, pp));
    for (const auto dispatch :
         {pipeline::Dispatch::kArrival, pipeline::Dispatch::kStrict}) {
      spec.plan.dispatch = dispatch;
      for (std::uint64_t seed : Seeds(pp == 2 ? 50 : 20)) {
        ASSERT_EQ(Difference(RunWith(seed, spec), one), "")
            << "pp " << pp << ", " << ReplayCommand(seed);
      }
    }
  }
}

TEST_P(NamedSchedulesTest, WithReplicasToo) {
  JobSpec alone = EightLayers(2, 1);
  const SimulatedRun flat = RunWith(/*seed=*/0, alone);
  ASSERT_TRUE(flat.result.ok()) << flat.result.status();
  const JobSpec spec = Scheduled(GetParam(), EightLayers(2, 2));
  for (std::uint64_t seed : Seeds(20)) {
    ASSERT_EQ(Difference(RunWith(seed, spec), flat), "") << ReplayCommand(seed);
  }
}

INSTANTIATE_TEST_SUITE_P(All, NamedSchedulesTest,
                         testing::ValuesIn(pipeline::NamedSchedules()),
                         [](const auto& info) {
                           return absl::StrCat("of_", info.param.name);
                         });

// Orders that the search finds run, too.
TEST(FoundScheduleTest, TablesOfOnesOwnRun) {
  JobSpec spec = EightLayers(1, 2);
  spec.plan.cuts = {8};
  const absl::Status set = pipeline::SetTables(
      *pipeline::ParseGrid("rank 0: F0 F1 I0 F2 W0 F3 B1 B2 B3\n"
                           "# the last stage answers at once\n"
                           "rank 1: F0 B0 F1 B1 F2 B2 F3 B3\n"),
      spec.plan);
  ASSERT_TRUE(set.ok()) << set;
  JobSpec alone = EightLayers(1, 2);
  alone.plan.mesh = pipeline::Mesh();
  const SimulatedRun one = RunWith(/*seed=*/0, alone);
  for (std::uint64_t seed : Seeds(50)) {
    ASSERT_EQ(Difference(RunWith(seed, spec), one), "") << ReplayCommand(seed);
  }
}

// A receive that stands before what its sender waits for is no deadlock here,
// but tables that wait for each other are, and no job begins with them.
TEST(FoundScheduleTest, TablesThatWaitForEachOtherAreRefused) {
  JobSpec spec = EightLayers(1, 2);
  spec.plan.cuts = {8};
  spec.plan.dispatch = pipeline::Dispatch::kStrict;
  ASSERT_TRUE(pipeline::SetTables(
                  *pipeline::ParseGrid("rank 0: F0 B0 F1 B1 F2 B2 F3 B3\n"
                                       "rank 1: F0 F1 B0 B1 F2 F3 B2 B3\n"),
                  spec.plan)
                  .ok());
  const SimulatedRun run = RunWith(/*seed=*/0, spec);
  EXPECT_EQ(run.result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(run.result.status().message().find("the tables do not end"),
            std::string::npos)
      << run.result.status();
}

}  // namespace
}  // namespace troupe::actors
