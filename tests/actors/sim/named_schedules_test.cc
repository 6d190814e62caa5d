// Tests every schedule that has a name on simulated ranks: it has the bits of
// one rank with the same micro-batches, and never more activations than its
// table, which is an invariant of all simulations (actors/sim/recorder.h).

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/optim/sgd.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/sim/seed_sweep.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

// Returns a job of eight linear layers, each with a ReLU, and two samples a
// micro-batch.
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

// Returns the job with the schedule and even cuts.
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

class NamedSchedulesTest
    : public testing::TestWithParam<pipeline::NamedSchedule> {};

TEST_P(NamedSchedulesTest, GiveTheBitsOfOneRankUnderEverySeed) {
  for (const int pp : {2, 4}) {
    JobSpec alone = EightLayers(1, pp);
    alone.plan.mesh = pipeline::Mesh();
    const SimulatedRun one = Simulate(alone, /*seed=*/0);
    ASSERT_TRUE(one.result.ok()) << one.result.status();
    JobSpec spec = Scheduled(GetParam(), EightLayers(1, pp));
    for (const auto dispatch :
         {pipeline::Dispatch::kArrival, pipeline::Dispatch::kStrict}) {
      spec.plan.dispatch = dispatch;
      ASSERT_EQ(DifferenceUnderSeeds(spec, pp == 2 ? 50 : 20, one), "")
          << "pp " << pp;
    }
  }
}

TEST_P(NamedSchedulesTest, WithReplicasToo) {
  JobSpec alone = EightLayers(2, 1);
  const SimulatedRun flat = Simulate(alone, /*seed=*/0);
  ASSERT_TRUE(flat.result.ok()) << flat.result.status();
  const JobSpec spec = Scheduled(GetParam(), EightLayers(2, 2));
  ASSERT_EQ(DifferenceUnderSeeds(spec, 20, flat), "");
}

// Micro-batches have 7, 7, 7 and 3 samples, or 4, 4, 4 and 2 on each of two
// replicas. Evaluations, of 72 samples, have a smaller last one, too.
TEST_P(NamedSchedulesTest, WithASmallerLastMicroBatch) {
  for (const int dp : {1, 2}) {
    JobSpec alone = EightLayers(dp, 1);
    alone.plan.global_batch_size = dp == 1 ? 24 : 28;
    alone.plan.micro_batch_size = dp == 1 ? 7 : 4;
    alone.test = alone.train;
    const SimulatedRun flat = Simulate(alone, /*seed=*/0);
    ASSERT_TRUE(flat.result.ok()) << flat.result.status();
    ASSERT_EQ(flat.reports.evaluations.size(), 1u);
    JobSpec spec = alone;
    spec.plan.mesh = pipeline::Mesh(dp, 2);
    spec = Scheduled(GetParam(), spec);
    ASSERT_EQ(DifferenceUnderSeeds(spec, 10, flat), "") << "dp " << dp;
  }
}

// Returns a job of nine linear layers in floats, of which the first and the
// eighth share one matrix: in a V, both are on one rank. The sums of each use
// are the same on one rank and in stages, to the last bit.
JobSpec TiedLayers(int dp, int pp) {
  JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kFloat, /*steps=*/2,
                           /*fused=*/false, /*momentum=*/0.9});
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    auto& first = model->Append<nn::Linear>(4, 4);
    model->Append<nn::ReLU>();
    for (int layer = 1; layer < 7; ++layer) {
      model->Append<nn::Linear>(4, 4);
      model->Append<nn::ReLU>();
    }
    model->Append<nn::Linear>(4, 4).TieParameter("weight", first, "weight");
    model->Append<nn::Linear>(4, 2);
    return model;
  };
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  spec.plan.micro_batch_size = pp == 4 || dp == 2 ? 3 : 6;
  return spec;
}

TEST_P(NamedSchedulesTest, AddUpWhatStagesShareOnce) {
  for (const auto& [dp, pp] :
       {std::pair(1, 2), std::pair(1, 4), std::pair(2, 2)}) {
    JobSpec flat = TiedLayers(dp, pp);
    flat.plan.mesh = pipeline::Mesh(dp);
    const SimulatedRun want = Simulate(flat, /*seed=*/0);
    ASSERT_TRUE(want.result.ok()) << want.result.status();
    const JobSpec spec = Scheduled(GetParam(), TiedLayers(dp, pp));
    ASSERT_EQ(DifferenceUnderSeeds(spec, 10, want), "")
        << "dp " << dp << ", pp " << pp;
  }
}

// A norm that counted a copy twice would be larger. Numbers are exact, so that
// the order in which stages add up their squares does not matter.
TEST_P(NamedSchedulesTest, CountWhatStagesShareOnceInTheNorm) {
  const auto clipped = [](JobSpec spec) {
    const nn::Linear::Options f64 = {/*bias=*/false, nn::DType::kF64};
    spec.dtype = nn::DType::kF64;
    spec.kernels = [] { return nn::CreateReferenceKernels(); };
    spec.steps = 1;
    spec.model = [f64] {
      auto model = std::make_unique<nn::Sequential>();
      const auto add = [&](std::int64_t out) -> nn::Linear& {
        auto& linear = model->Append<nn::Linear>(4, out, f64);
        linear.Parameters()[0]->init = nn::Initializer::Integers(-1, 1);
        return linear;
      };
      auto& first = add(4);
      for (int i = 1; i < 14; ++i) model->Append<nn::ReLU>();
      add(4).TieParameter("weight", first, "weight");
      add(2);
      return model;
    };
    spec.optimizer = [] {
      nn::SgdOptions sgd;
      sgd.lr = 1;
      sgd.common.clip_grad_norm = 0.5;
      sgd.common.skip_nonfinite = true;
      return std::make_unique<nn::Sgd>(sgd);
    };
    return spec;
  };
  JobSpec flat = clipped(TiedLayers(1, 2));
  flat.plan.mesh = pipeline::Mesh();
  const SimulatedRun want = Simulate(flat, /*seed=*/0);
  ASSERT_TRUE(want.result.ok()) << want.result.status();
  const JobSpec spec = Scheduled(GetParam(), clipped(TiedLayers(1, 2)));
  ASSERT_EQ(DifferenceUnderSeeds(spec, 3, want), "");
}

INSTANTIATE_TEST_SUITE_P(All, NamedSchedulesTest,
                         testing::ValuesIn(pipeline::NamedSchedules()),
                         [](const auto& info) {
                           return absl::StrCat("of_", info.param.name);
                         });

// Stages that do not sum their copies are found, by their tables and by the
// copies.
TEST(TiedStagesTest, CopiesThatAreNotSummedAreFound) {
  JobSpec spec = TiedLayers(/*dp=*/1, /*pp=*/2);
  spec.plan.cuts = {8};
  SimulationOptions options;
  options.edit_table = [](int, pipeline::StepTable& table) {
    const auto is_tied = [](const pipeline::Action& action) {
      return action.kind == pipeline::ActionKind::kReduceTied;
    };
    auto& actions = table.actions;
    ASSERT_EQ(std::count_if(actions.begin(), actions.end(), is_tied), 1);
    actions.erase(std::find_if(actions.begin(), actions.end(), is_tied));
    table = pipeline::WithNeeds(table, {});
  };
  const SimulatedRun run = Simulate(spec, options);
  const absl::Status& differ = run.parameters.status();
  EXPECT_NE(differ.message().find("differ after step 1 in 0.weight"),
            std::string::npos)
      << differ;
  EXPECT_NE(run.check.message().find("before it was summed over its stages"),
            std::string::npos)
      << run.check;
}

// Tables that the search finds run, too.
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
  const SimulatedRun one = Simulate(alone, /*seed=*/0);
  ASSERT_EQ(DifferenceUnderSeeds(spec, 50, one), "");
}

// A receive that stands before an action for which its sender waits is no
// deadlock here. Tables that wait for each other are one, and refused.
TEST(FoundScheduleTest, TablesThatWaitForEachOtherAreRefused) {
  JobSpec spec = EightLayers(1, 2);
  spec.plan.cuts = {8};
  spec.plan.dispatch = pipeline::Dispatch::kStrict;
  ASSERT_TRUE(pipeline::SetTables(
                  *pipeline::ParseGrid("rank 0: F0 B0 F1 B1 F2 B2 F3 B3\n"
                                       "rank 1: F0 F1 B0 B1 F2 F3 B2 B3\n"),
                  spec.plan)
                  .ok());
  const SimulatedRun run = Simulate(spec, {});
  EXPECT_EQ(run.result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(run.result.status().message().find("the tables do not end"),
            std::string::npos)
      << run.result.status();
}

}  // namespace
}  // namespace troupe::actors
