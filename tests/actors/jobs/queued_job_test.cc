// A whole job on queued devices (nn/kernels/queued): the host runs ahead, work
// runs later in an order that a seed chooses, in memory that the host may not
// access; and the bits are those of the CPU.

#include "tests/actors/jobs/queued_job.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "actors/spec/job_spec.h"
#include "gtest/gtest.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/optim/layerwise.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/sim/divided_jobs.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/skip_models.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"
#include "tests/comm/unordered_communicators.h"

namespace troupe::actors {
namespace {

void ExpectTheBitsOfTheCpu(const JobSpec& spec, std::uint64_t seeds) {
  const Outcome want = OnTheCpu(spec);
  ASSERT_TRUE(want.status.ok()) << want.status;
  ASSERT_EQ(want.reports.steps.size(), std::size_t{kQueuedSteps});
  for (std::uint64_t seed : Seeds(seeds)) {
    const Outcome outcome = OnQueuedDevices(spec, seed);
    ASSERT_TRUE(outcome.status.ok())
        << "seed " << seed << ": " << outcome.status;
    ASSERT_TRUE(outcome == want) << "seed " << seed;
  }
}

TEST(QueuedJobTest, OneRankHasTheBitsOfTheCpu) {
  ExpectTheBitsOfTheCpu(LeNetJob(/*dp=*/1, /*pp=*/1), /*seeds=*/200);
}

TEST(QueuedJobTest, TwoRanksHaveTheBitsOfTheCpu) {
  ExpectTheBitsOfTheCpu(LeNetJob(/*dp=*/2, /*pp=*/1), /*seeds=*/200);
}

TEST(QueuedJobTest, StagesHaveTheBitsOfTheCpu) {
  ExpectTheBitsOfTheCpu(LeNetJob(/*dp=*/2, /*pp=*/2), /*seeds=*/50);
}

// Each replica updates slices of the buckets and gathers those of the others.
TEST(QueuedJobTest, OwnersOfStatesHaveTheBitsOfTheCpu) {
  JobSpec spec = LeNetJob(/*dp=*/2, /*pp=*/2);
  const Outcome whole = OnTheCpu(spec);
  spec.plan.zero_stage = 1;
  ASSERT_TRUE(OnTheCpu(spec) == whole);
  ExpectTheBitsOfTheCpu(spec, /*seeds=*/50);
  spec.plan.zero_stage = 2;
  spec.plan.zero_accumulates_whole = true;
  ASSERT_TRUE(OnTheCpu(spec) == whole);
  ExpectTheBitsOfTheCpu(spec, /*seeds=*/10);
}

// Gradients are kept as slices, added up for each micro-batch, and the next
// bucket writes the memory of one whose slice is kept.
TEST(QueuedJobTest, OwnersOfGradientsHaveTheBitsOfTheCpu) {
  for (const int pp : {1, 2}) {
    JobSpec spec = LeNetJob(/*dp=*/2, pp);
    spec.plan.zero_stage = 2;
    ExpectTheBitsOfTheCpu(spec, /*seeds=*/50);
    spec.plan.reduction_dtype = nn::DType::kBF16;
    ExpectTheBitsOfTheCpu(spec, /*seeds=*/10);
  }
}

// Layers wait for their peers, whose collectives the host runs.
TEST(QueuedJobTest, PiecesHaveTheBitsOfTheCpu) {
  for (const Layout& layout :
       {Layout{2, 1, 1}, Layout{2, 2, 1, /*zero=*/1},
        Layout{2, 2, 1, /*zero=*/2, /*shares_tokens=*/true}}) {
    SCOPED_TRACE(layout.ToString());
    JobSpec spec = GptJob(layout, AdamThatClips(), /*tie_head=*/true,
                          /*dropout=*/0.1);
    spec.kernels = LeNetJob(1, 1).kernels;
    spec.steps = kQueuedSteps;
    ExpectTheBitsOfTheCpu(spec, /*seeds=*/5);
  }
}

// Norms of parameters are summed over the owners in the queue of updates.
TEST(QueuedJobTest, OwnersOfNormsHaveTheBitsOfTheCpu) {
  JobSpec spec = LeNetJob(/*dp=*/2, /*pp=*/2);
  spec.optimizer = nn::LambOptions();
  for (const int stage : {1, 2}) {
    spec.plan.zero_stage = stage;
    ExpectTheBitsOfTheCpu(spec, /*seeds=*/10);
  }
}

TEST(QueuedJobTest, ValuesAreNotReleasedYet) {
  JobSpec spec = LeNetJob(/*dp=*/2, /*pp=*/1);
  spec.plan.zero_stage = 3;
  EXPECT_EQ(OnQueuedDevices(spec, /*seed=*/0).status.message(),
            "PlanOptions.zero_stage = 3 releases parameters between their "
            "uses, which this device, which runs kernels in queues, cannot do "
            "yet; use the cpu, or set it to 2");
}

// A skip connection that a rank passes on is copied to its device and back.
TEST(QueuedJobTest, SkipConnectionsHaveTheBitsOfTheCpu) {
  JobSpec spec = LeNetJob(/*dp=*/1, /*pp=*/3);
  spec.model = ImageUNet();
  spec.plan.cuts = {6, 8};
  ExpectTheBitsOfTheCpu(spec, /*seeds=*/20);
}

// Returns a job whose first and last stage share a matrix: either they are on
// two ranks, whose gradients are summed before those of the replicas, or, in a
// V schedule, on one rank.
JobSpec TiedJob(int dp, const char* schedule, std::vector<pipeline::Cut> cuts) {
  JobSpec spec = LeNetJob(dp, /*pp=*/2);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(28 * 28, 10);
    auto& first = model->Append<nn::Linear>(10, 10);
    model->Append<nn::ReLU>();
    model->Append<nn::Linear>(10, 10).TieParameter("weight", first, "weight");
    return model;
  };
  spec.plan.cuts = std::move(cuts);
  const absl::Status set = pipeline::SetSchedule(schedule, spec.plan);
  EXPECT_TRUE(set.ok()) << set;
  return spec;
}

TEST(QueuedJobTest, StagesThatShareAMatrixHaveTheBitsOfTheCpu) {
  ExpectTheBitsOfTheCpu(TiedJob(/*dp=*/1, "1f1b", {3}), /*seeds=*/20);
  ExpectTheBitsOfTheCpu(TiedJob(/*dp=*/2, "1f1b", {3}), /*seeds=*/20);
  JobSpec rounded = TiedJob(/*dp=*/2, "1f1b", {3});
  rounded.plan.reduction_dtype = nn::DType::kBF16;
  ExpectTheBitsOfTheCpu(rounded, /*seeds=*/20);
  ExpectTheBitsOfTheCpu(TiedJob(/*dp=*/1, "zb_v", {2, 3, 4}), /*seeds=*/20);
}

// Returns the first seed that reveals the bug.
template <typename Bug>
std::uint64_t FirstSeedThatFinds() {
  const JobSpec spec = LeNetJob(/*dp=*/2, /*pp=*/1);
  const Outcome want = OnTheCpu(spec);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Outcome outcome = OnQueuedDevices(spec, seed, [](auto comm) {
      return std::make_unique<Bug>(std::move(comm));
    });
    if (!(outcome == want)) return seed;
  }
  return 200;
}

TEST(QueuedJobTest, FindsAReductionThatDoesNotWait) {
  EXPECT_LT(FirstSeedThatFinds<comm::TooEarly>(), 200u);
}

TEST(QueuedJobTest, FindsAnUpdateThatDoesNotWait) {
  EXPECT_LT(FirstSeedThatFinds<comm::DoneAtOnce>(), 200u);
}

// A job resumes on the CPU from a checkpoint of a device, and vice versa.
TEST(QueuedJobTest, CheckpointsTravel) {
  JobSpec longer = LeNetJob(/*dp=*/2, /*pp=*/1);
  longer.steps = kQueuedSteps + 2;
  const Outcome want = OnTheCpu(longer);
  const double last = want.reports.losses().back();
  for (const std::uint64_t seed : Seeds(20)) {
    JobSpec first = LeNetJob(/*dp=*/2, /*pp=*/1);
    first.checkpoint.dir = FreshFolder("checkpoints");
    ASSERT_TRUE(OnQueuedDevices(first, seed).status.ok());
    JobSpec second = first;
    second.checkpoint.resume = true;
    second.steps = kQueuedSteps + 1;
    Outcome on_cpu = OnTheCpu(second);
    ASSERT_TRUE(on_cpu.status.ok()) << on_cpu.status;
    second.steps = kQueuedSteps + 2;
    Outcome on_device = OnQueuedDevices(second, seed);
    ASSERT_TRUE(on_device.status.ok()) << on_device.status;
    ASSERT_EQ(on_device.reports.steps.size(), 1u);
    EXPECT_EQ(on_device.reports.losses().back(), last) << ReplayCommand(seed);
  }
}

TEST(QueuedJobTest, ALossThatIsNoNumberEndsTheJob) {
  for (const std::uint64_t seed : Seeds(20)) {
    JobSpec spec = LeNetJob(/*dp=*/2, /*pp=*/1);
    spec.loss_scale = 0x1p1000;
    spec.checkpoint.dir = FreshFolder("checkpoints");
    const Outcome outcome = OnQueuedDevices(spec, seed);
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kFailedPrecondition)
        << outcome.status << ReplayCommand(seed);
    EXPECT_TRUE(outcome.reports.checkpoints.empty());
  }
}

}  // namespace
}  // namespace troupe::actors
