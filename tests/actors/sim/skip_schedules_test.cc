// Tests skip connections across stages on simulated ranks: whatever the cuts,
// the schedule and the order of messages, the bits are those of one rank.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/modules/skip.h"
#include "nn/ops/add.h"
#include "nn/ops/cast.h"
#include "nn/ops/relu.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/sim/seed_sweep.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/skip_models.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

// Returns a job of a U-Net with an evaluation after each step.
JobSpec UNetJob(int dp, int pp, const DenseUNetOptions& options = {}) {
  JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kExact, /*steps=*/2});
  spec.model = DenseUNet(options);
  spec.test = spec.train;
  spec.eval_every = 1;
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  return spec;
}

// Runs the same job with the whole model on each rank.
SimulatedRun Uncut(const JobSpec& spec) {
  JobSpec whole = spec;
  whole.plan.mesh = pipeline::Mesh(spec.plan.mesh.dp());
  SimulatedRun run = Simulate(whole, /*seed=*/0);
  EXPECT_TRUE(run.result.ok()) << run.result.status();
  EXPECT_EQ(run.reports.evaluations.size(), 2u);
  return run;
}

// Sets the schedule, and even cuts into its stages.
void SetSchedule(const pipeline::NamedSchedule& schedule, JobSpec& spec) {
  spec.plan.virtual_stages = schedule.chunks == 0 ? 2 : schedule.chunks;
  const absl::Status set = pipeline::SetSchedule(schedule.name, spec.plan);
  ASSERT_TRUE(set.ok()) << schedule.name << ": " << set;
  const int stages = static_cast<int>(spec.plan.placement.size());
  for (int stage = 1; stage < stages; ++stage) {
    spec.plan.cuts.emplace_back(stage * kDenseUNetModules / stages);
  }
}

class SkipSchedulesTest
    : public testing::TestWithParam<pipeline::NamedSchedule> {};

// Under sanitizers, the smallest and the largest mesh.
TEST_P(SkipSchedulesTest, GiveTheBitsOfTheUncutModel) {
  const std::vector<std::pair<int, int>> meshes = {{1, 2}, {1, 3}, {1, 4},
                                                   {2, 2}, {2, 3}, {2, 4}};
  // Equal for all schedules.
  static auto* const uncut = new std::map<std::pair<int, int>, SimulatedRun>;
  for (const std::uint64_t number : Cases(2 * meshes.size())) {
    const auto [dp, pp] = meshes[number / 2];
    JobSpec spec = UNetJob(dp, pp);
    spec.plan.micro_batch_size = dp == 2 ? 1 : pp == 3 ? 4 : 3;
    const std::pair<int, int> key(dp, spec.plan.micro_batch_size);
    if (uncut->count(key) == 0) uncut->emplace(key, Uncut(spec));
    SetSchedule(GetParam(), spec);
    spec.plan.dispatch = number % 2 == 0 ? pipeline::Dispatch::kArrival
                                         : pipeline::Dispatch::kStrict;
    ASSERT_EQ(DifferenceUnderSeeds(spec, dp == 2 ? 1 : 3, uncut->at(key)), "")
        << "dp " << dp << ", pp " << pp;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SkipSchedulesTest,
                         testing::ValuesIn(pipeline::NamedSchedules()),
                         [](const auto& info) {
                           return absl::StrCat("of_", info.param.name);
                         });

// The model is cut before each module, so that each end of a connection is once
// the first and once the last module of a stage, and is sent without being
// kept.
TEST(SkipCutsTest, AnyCutGivesTheBitsOfTheUncutModel) {
  JobSpec spec = UNetJob(1, 2);
  spec.plan.micro_batch_size = 6;
  const SimulatedRun want = Uncut(spec);
  for (int cut = 1; cut < kDenseUNetModules; ++cut) {
    spec.plan.cuts = {cut};
    ASSERT_EQ(DifferenceUnderSeeds(spec, 3, want), "") << "cut " << cut;
  }
  spec.plan.mesh = pipeline::Mesh(1, kDenseUNetModules);
  spec.plan.cuts.clear();
  for (int cut = 1; cut < kDenseUNetModules; ++cut) {
    spec.plan.cuts.emplace_back(cut);
  }
  ASSERT_EQ(Difference(Simulate(spec, /*seed=*/1), want), "");
}

TEST(SkipCutsTest, NeitherDrawsNorARecomputedBlockDependOnTheCuts) {
  const DenseUNetOptions again = {/*recompute=*/true};
  JobSpec spec = UNetJob(1, 3, again);
  spec.plan.micro_batch_size = 4;
  JobSpec kept = UNetJob(1, 3);
  kept.plan.micro_batch_size = 4;
  const SimulatedRun want = Uncut(kept);
  ASSERT_EQ(Difference(Uncut(spec), want), "");
  for (const std::vector<pipeline::Cut>& cuts :
       {std::vector<pipeline::Cut>{2, 6}, {6, 7}, {5, 12}}) {
    spec.plan.cuts = cuts;
    for (const char* schedule : {"1f1b", "zb_h1"}) {
      ASSERT_TRUE(pipeline::SetSchedule(schedule, spec.plan).ok());
      ASSERT_EQ(DifferenceUnderSeeds(spec, 3, want), "") << schedule;
    }
  }
}

// x -> (x, x in half precision)
class Fork : public nn::Module {
 public:
  Fork() { set_many_tensors(); }
  nn::TensorList ForwardMany(nn::Context& ctx,
                             absl::Span<const nn::Tensor> xs) override {
    return {xs[0], nn::ops::Cast(ctx, xs[0], nn::DType::kBF16)};
  }
};

// (a, b) -> (relu(a), b)
class First : public nn::Module {
 public:
  First() { set_many_tensors(); }
  nn::TensorList ForwardMany(nn::Context& ctx,
                             absl::Span<const nn::Tensor> xs) override {
    return {nn::ops::Relu(ctx, xs[0]), xs[1]};
  }
};

// (a, b) -> a + b
class Join : public nn::Module {
 public:
  Join() { set_many_tensors(); }
  nn::TensorList ForwardMany(nn::Context& ctx,
                             absl::Span<const nn::Tensor> xs) override {
    return {
        nn::ops::Add(ctx, xs[0], nn::ops::Cast(ctx, xs[1], nn::DType::kF64))};
  }
};

TEST(SkipCutsTest, SeveralActivationsCrossACut) {
  JobSpec spec = UNetJob(1, 4);
  spec.model = [] {
    const nn::Linear::Options f64 = {/*bias=*/true, nn::DType::kF64};
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(4, 6, f64);
    model->Append<nn::Stash>("skip");
    model->Append<Fork>();
    model->Append<First>();
    model->Append<Join>();
    model->Append<nn::PopAdd>("skip");
    model->Append<nn::Linear>(6, 2, f64);
    return model;
  };
  spec.plan.micro_batch_size = 6;
  const SimulatedRun want = Uncut(spec);
  spec.plan.cuts = {3, 4, 5};
  for (const char* schedule : {"gpipe", "1f1b", "zb_h1"}) {
    ASSERT_TRUE(pipeline::SetSchedule(schedule, spec.plan).ok());
    ASSERT_EQ(DifferenceUnderSeeds(spec, 3, want), "") << schedule;
  }
}

TEST(SkipCutsTest, TheLastStageMayHaveNoParameters) {
  const DenseUNetOptions options = {/*recompute=*/false,
                                    /*ends_without_parameters=*/true};
  for (const int dp : {1, 2}) {
    JobSpec spec = UNetJob(dp, 2, options);
    spec.plan.micro_batch_size = 3;
    const SimulatedRun want = Uncut(spec);
    spec.plan.cuts = {kDenseUNetModules};
    for (const char* schedule : {"gpipe", "1f1b", "zb_h1", "zb_h2"}) {
      ASSERT_TRUE(pipeline::SetSchedule(schedule, spec.plan).ok());
      ASSERT_EQ(DifferenceUnderSeeds(spec, 3, want), "")
          << schedule << ", dp " << dp;
    }
  }
}

}  // namespace
}  // namespace troupe::actors
