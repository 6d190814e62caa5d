// Jobs with a communication hook (JobSpec::hook): reductions of their own, in
// several rounds.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/hooks/gathered_reduction.h"
#include "actors/hooks/hooks.h"
#include "actors/job.h"
#include "base/field_error.h"
#include "comm/communicator.h"
#include "gtest/gtest.h"
#include "nn/optim/adam.h"
#include "tests/actors/jobs/one_weight_job.h"
#include "tests/actors/jobs/queued_job.h"
#include "tests/actors/jobs/stages_that_clip.h"
#include "tests/actors/sim/seed_sweep.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

TEST(HookJobTest, HooksHaveNames) {
  EXPECT_EQ(HookNames(),
            (std::vector<std::string>{"none", "gather_bf16", "gather_f16"}));
  EXPECT_EQ(HookNamed("gather_f16")->name, "gather_f16");
  EXPECT_EQ(HookNamed("gather_f16")->rounds, 2);
  EXPECT_EQ(HookNamed("none")->name, "");
  EXPECT_EQ(HookNamed("gather").status().message(),
            "must be one of \"none\", \"gather_bf16\", \"gather_f16\"");
}

// In bf16, 258 is followed by 260: (256 + 1) + (1 + 1) is 259, a tie that goes
// to 260. Each sum of two rounded by itself would give 258.
TEST(HookJobTest, AGatheredSumIsRoundedOnce) {
  const std::vector<float> targets = {-128, -0.5, -0.5, -0.5};
  for (const std::int64_t inline_bytes : {0, 1 << 20}) {
    JobSpec spec = OneWeightJob(targets);
    spec.plan.inline_bytes = inline_bytes;
    spec.hook = GatherIn(nn::DType::kF32);
    ExpectSum(259, targets, spec);
    spec.hook = GatherIn(nn::DType::kBF16);
    ExpectSum(260, targets, spec);
    spec.hook = GatherIn(nn::DType::kF16);
    ExpectSum(259, targets, spec);
  }
}

TEST(HookJobTest, HalvesOfAnAllReduceHaveItsBits) {
  JobSpec spec = TinyCnnJob(/*dp=*/3, /*steps=*/6);
  spec.plan.global_batch_size = 48;
  spec.plan.buckets.bucket_bytes = 32 << 10;
  for (const std::int64_t inline_bytes : {0, 1 << 30}) {
    spec.plan.inline_bytes = inline_bytes;
    spec.hook = {};
    const Reports plain = ReportsOf(spec);
    spec.hook = GatherIn(nn::DType::kF32);
    const Reports halves = ReportsOf(spec);
    EXPECT_EQ(halves.losses(), plain.losses());
    EXPECT_EQ(halves.info.plan.ranks[0].reduce_inline, inline_bytes > 0);
    EXPECT_EQ(halves.info.plan.ranks[0].train.rounds(), 2);  // no RU
    spec.hook = GatherIn(nn::DType::kBF16);
    EXPECT_NE(ReportsOf(spec).losses(), plain.losses());
  }
}

TEST(HookJobTest, ThePlanNamesItAndHasItsRounds) {
  JobSpec spec = SmallJob({/*ranks=*/2});
  spec.hook = GatherIn(nn::DType::kBF16);
  const pipeline::Plan plan = ReportsOf(spec).info.plan;
  EXPECT_EQ(plan.hook, "gather_bf16");
  EXPECT_EQ(plan.ranks[0].train.rounds(), 2);
}

TEST(HookJobTest, OneReplicaReducesNothing) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/4);
  const Reports plain = ReportsOf(spec);
  spec.hook = GatherIn(nn::DType::kBF16);
  const Reports hooked = ReportsOf(spec);
  EXPECT_EQ(hooked.losses(), plain.losses());
  EXPECT_EQ(hooked.info.plan.ranks[0].train.rounds(), 1);
}

// --- A hook of a user's ---

// Reduces to the first replica, which broadcasts the sum. The round between
// them has no collective.
class ByTheFirst : public BucketReduction {
 public:
  explicit ByTheFirst(nn::Tensor sum) : sum_(std::move(sum)) {}

  std::optional<comm::Collective> Exchange(
      int round, const nn::Tensor& grads) const override {
    if (round == 0) {
      return comm::Reduce(comm::ReduceOp::kSum, /*root=*/0, grads, sum_);
    }
    if (round == 1) return std::nullopt;
    return comm::Broadcast(/*root=*/0, sum_);
  }
  absl::Status End(nn::Tensor grads) override {
    std::copy(sum_.data<double>(), sum_.data<double>() + sum_.numel(),
              grads.data<double>());
    return absl::OkStatus();
  }

 private:
  nn::Tensor sum_;
};

CommunicationHook ByTheFirstHook() {
  CommunicationHook hook;
  hook.name = "by_the_first";
  hook.rounds = 3;
  hook.make = [](const GradientBucket& bucket)
      -> absl::StatusOr<std::unique_ptr<BucketReduction>> {
    TROUPE_ASSIGN_OR_RETURN(nn::Tensor sum, bucket.Allocate(bucket.dtype));
    return std::make_unique<ByTheFirst>(std::move(sum));
  };
  return hook;
}

// The sums are exact, so their order gives no other bits.
TEST(HookJobTest, AHookMayLeaveARoundOut) {
  JobSpec spec = SmallJob({/*ranks=*/3, Numbers::kExact});
  const Reports plain = ReportsOf(spec);
  spec.hook = ByTheFirstHook();
  const Reports hooked = ReportsOf(spec);
  EXPECT_EQ(hooked.losses(), plain.losses());
  EXPECT_EQ(hooked.info.plan.ranks[0].train.rounds(), 3);
}

TEST(HookJobTest, ABucketSaysWhatItHolds) {
  JobSpec spec = SmallJob({/*ranks=*/2});
  spec.hook = GatherIn(nn::DType::kBF16);
  spec.hook.make = [](const GradientBucket& bucket)
      -> absl::StatusOr<std::unique_ptr<BucketReduction>> {
    EXPECT_EQ(bucket.replicas, 2);
    EXPECT_EQ(bucket.elems % bucket.replicas, 0);
    for (const GradientBucket::Parameter& parameter : bucket.parameters) {
      EXPECT_LE(parameter.begin + parameter.shape.numel(), bucket.elems)
          << parameter.name;
    }
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for ", bucket.parameters[0].name));
  };
  const absl::Status status = RunJob(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("no room for "), std::string::npos) << status;
}

TEST(HookJobTest, WhatIsWrongWithAHook) {
  const auto error_of = [](const std::function<void(JobSpec&)>& edit) {
    JobSpec spec = SmallJob({/*ranks=*/2});
    spec.hook = GatherIn(nn::DType::kBF16);
    edit(spec);
    return std::string(RunJob(spec).status().message());
  };
  EXPECT_EQ(error_of([](JobSpec& spec) { spec.hook.name.clear(); }),
            "JobSpec.hook has no name; give it one for the plan");
  EXPECT_EQ(error_of([](JobSpec& spec) { spec.hook.make = nullptr; }),
            "JobSpec.hook \"gather_bf16\" has no `make`; set it to what "
            "makes the reductions");
  EXPECT_EQ(error_of([](JobSpec& spec) { spec.hook.rounds = 1025; }),
            "JobSpec.hook \"gather_bf16\" has 1025 rounds; use 1 to 1024");
  EXPECT_EQ(
      error_of(
          [](JobSpec& spec) { spec.plan.reduction_dtype = nn::DType::kBF16; }),
      "JobSpec.hook and PlanOptions.reduction_dtype are both set, and each "
      "says how gradients are reduced; remove one");
}

// --- The same bits under every seed, whatever overlaps ---

JobSpec HookedJob(const std::function<void(JobSpec&)>& edit) {
  SmallJobOptions options;
  options.ranks = 2;
  options.steps = 4;
  JobSpec spec = SmallJob(options);
  spec.hook = GatherIn(nn::DType::kBF16);
  if (edit) edit(spec);
  return spec;
}

void ExpectOneOutcomeUnderEverySeed(const JobSpec& spec, std::uint64_t seeds,
                                    const SimulatedRun& want) {
  ASSERT_TRUE(want.result.ok()) << want.result.status();
  ASSERT_EQ(DifferenceUnderSeeds(spec, seeds, want), "");
}

TEST(HookJobTest, SimulatedReplicas) {
  const JobSpec spec = HookedJob(nullptr);
  ExpectOneOutcomeUnderEverySeed(spec, 200, Simulate(spec, {}));
}

TEST(HookJobTest, SimulatedStepsThatOverlap) {
  ExpectOneOutcomeUnderEverySeed(
      HookedJob([](JobSpec& spec) { spec.plan.cross_step = true; }), 200,
      Simulate(HookedJob(nullptr), {}));
}

TEST(HookJobTest, SimulatedStagesThatLookAtAllGradients) {
  const JobSpec spec = HookedJob(CutIntoStagesThatClip);
  ExpectOneOutcomeUnderEverySeed(spec, 100, Simulate(spec, {}));
}

TEST(HookJobTest, OnDevicesThatWorkLater) {
  for (const int pp : {1, 2}) {
    JobSpec spec = LeNetJob(/*dp=*/2, pp);
    spec.hook = GatherIn(nn::DType::kBF16);
    const Outcome want = OnTheCpu(spec);
    ASSERT_TRUE(want.status.ok()) << want.status;
    for (std::uint64_t seed : Seeds(30)) {
      ASSERT_TRUE(OnQueuedDevices(spec, seed) == want) << ReplayCommand(seed);
    }
  }
}

}  // namespace
}  // namespace troupe::actors
