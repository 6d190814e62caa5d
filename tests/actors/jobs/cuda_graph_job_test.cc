// Jobs whose training steps are recorded as a graph and launched from then on,
// on emulated GPUs, have the bits of jobs that run op by op.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/engine/recording/graph_choice.h"
#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/device_queues.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::actors {
namespace {

using nn::cuda::EmulatedWorld;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::int64_t kSteps = 6;  // 2 to warm up, the capture, 3 launches

JobSpec LeNetJob() {
  JobSpec spec = TinyCnnJob(/*dp=*/1, kSteps);
  spec.device = *nn::Device::Parse("cuda");
  spec.plan.global_batch_size = 4;
  spec.plan.buckets.bucket_bytes = 20'000;
  spec.eval_every = 4;  // between two launches
  return spec;
}

// Returns a job with dropout.
JobSpec DropoutJob() {
  JobSpec spec = LeNetJob();
  spec.model = MakeDropoutMlp;
  return spec;
}

struct Outcome {
  absl::Status status;
  Reports reports;
  std::vector<std::string> notes;

  std::vector<double> evaluations() const {
    std::vector<double> losses;
    for (const EvaluationReport& report : reports.evaluations) {
      losses.push_back(report.loss);
    }
    return losses;
  }
};

Outcome Simulated(JobSpec spec, const std::string& graphs, std::uint64_t seed) {
  const EmulatedWorld world(seed);
  Outcome outcome;
  spec.cuda_graphs = graphs;
  spec.note = [&](const std::string& line) { outcome.notes.push_back(line); };
  SimulationOptions options;
  options.seed = seed;
  Simulation simulation(spec, options);
  outcome.status = simulation.Run(&outcome.reports).status();
  if (outcome.status.ok()) outcome.status = simulation.Check();
  return outcome;
}

// Expects a job with graphs to have the bits of one without, under all seeds.
void ExpectTheBitsOfTheUnrecorded(const JobSpec& spec, std::uint64_t seeds) {
  const Outcome eager = Simulated(spec, "off", 0);
  ASSERT_TRUE(eager.status.ok()) << eager.status;
  EXPECT_THAT(eager.notes, IsEmpty());
  for (std::uint64_t seed : Seeds(seeds)) {
    const Outcome graph = Simulated(spec, "on", seed);
    ASSERT_TRUE(graph.status.ok()) << graph.status << ReplayCommand(seed);
    EXPECT_THAT(graph.notes, ElementsAre("rank 0: steps run as a graph"));
    EXPECT_EQ(graph.reports.losses(), eager.reports.losses())
        << ReplayCommand(seed);
    EXPECT_EQ(graph.evaluations(), eager.evaluations()) << ReplayCommand(seed);
  }
}

TEST(CudaGraphJobTest, LeNet) { ExpectTheBitsOfTheUnrecorded(LeNetJob(), 8); }

// Makes the loss scale dynamic, so that some steps are skipped; a graph reads
// the scale that the previous step left on the device.
JobSpec ScaledJob(JobSpec spec) {
  spec.steps = 20;
  spec.loss_scale = 0x1p127;
  spec.dynamic_loss_scale.emplace().growth_interval = 2;
  spec.optimizer = [] {
    nn::AdamOptions adam;
    adam.lr = 0.01;
    adam.common.skip_nonfinite = true;
    return std::make_unique<nn::Adam>(adam);
  };
  return spec;
}

// Returns the scale of each step, and whether it was skipped.
std::vector<std::pair<double, bool>> ScalesOf(const Reports& reports) {
  std::vector<std::pair<double, bool>> scales;
  for (const StepReport& step : reports.steps) {
    scales.emplace_back(step.loss_scale, step.skipped);
  }
  return scales;
}

void ExpectTheSameScales(const JobSpec& spec, std::uint64_t seeds) {
  const Outcome eager = Simulated(spec, "off", 0);
  ASSERT_TRUE(eager.status.ok()) << eager.status;
  const auto want = ScalesOf(eager.reports);
  const auto skipped = std::count_if(want.begin(), want.end(),
                                     [](const auto& at) { return at.second; });
  EXPECT_GT(skipped, 0);
  EXPECT_LT(skipped, spec.steps);
  for (std::uint64_t seed : Seeds(seeds)) {
    const Outcome graph = Simulated(spec, "on", seed);
    ASSERT_TRUE(graph.status.ok()) << graph.status << ReplayCommand(seed);
    EXPECT_THAT(graph.notes, Contains("rank 0: steps run as a graph"));
    EXPECT_EQ(graph.reports.losses(), eager.reports.losses())
        << ReplayCommand(seed);
    EXPECT_EQ(ScalesOf(graph.reports), want) << ReplayCommand(seed);
  }
}

TEST(CudaGraphJobTest, DynamicLossScale) {
  ExpectTheSameScales(ScaledJob(DropoutJob()), 8);
}

TEST(CudaGraphJobTest, DynamicLossScaleOfRanksThatReduceByNccl) {
  JobSpec spec = ScaledJob(DropoutJob());
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
  ExpectTheSameScales(spec, 8);
}

TEST(CudaGraphJobTest, SeveralMicroBatches) {
  JobSpec spec = LeNetJob();
  spec.plan.micro_batch_size = 2;
  ExpectTheBitsOfTheUnrecorded(spec, 5);
}

TEST(CudaGraphJobTest, LayersThatDraw) {
  ExpectTheBitsOfTheUnrecorded(DropoutJob(), 10);
}

// Micro-batches have 3 samples and 1, so that a graph has both shapes.
TEST(CudaGraphJobTest, LayersThatDrawInSeveralMicroBatches) {
  JobSpec spec = DropoutJob();
  spec.plan.micro_batch_size = 3;
  ExpectTheBitsOfTheUnrecorded(spec, 10);
}

TEST(CudaGraphJobTest, OnThreadsOfItsOwn) {
  const Outcome want = Simulated(DropoutJob(), "off", 0);
  for (std::uint64_t seed : Seeds(5)) {
    emulated_cuda::Options options = EmulatedWorld::OptionsOf(seed);
    options.stall_seconds = 20;  // another thread may be about to go on
    const EmulatedWorld world(options);
    JobSpec spec = DropoutJob();
    spec.cuda_graphs = "on";
    const Reports got = ReportsOf(spec);
    EXPECT_EQ(got.losses(), want.reports.losses()) << seed;
  }
}

TEST(CudaGraphJobTest, ResumesInTheMiddle) {
  JobSpec longer = DropoutJob();
  longer.steps = kSteps + 4;
  const Outcome want = Simulated(longer, "off", 0);
  ASSERT_TRUE(want.status.ok()) << want.status;
  for (std::uint64_t seed : Seeds(5)) {
    JobSpec first = DropoutJob();
    first.checkpoint.dir = FreshFolder("checkpoints");
    first.checkpoint.every = 4;
    ASSERT_TRUE(Simulated(first, "on", seed).status.ok());
    JobSpec second = longer;
    second.checkpoint = first.checkpoint;
    second.checkpoint.resume = true;
    const Outcome resumed = Simulated(second, "on", seed + 1000);
    ASSERT_TRUE(resumed.status.ok()) << resumed.status;
    ASSERT_EQ(resumed.reports.steps.size(), 4u);
    EXPECT_EQ(resumed.reports.losses().back(), want.reports.losses().back())
        << seed;
    EXPECT_EQ(resumed.evaluations().back(), want.evaluations().back());
  }
}

// The job chooses the way that was faster.
TEST(CudaGraphJobTest, AutoChoosesAndSaysSo) {
  JobSpec spec = DropoutJob();
  spec.steps = GraphChoice::kWarmUpSteps + 2 * GraphChoice::kTimedSteps + 6;
  const Outcome eager = Simulated(spec, "off", 0);
  for (std::uint64_t seed : Seeds(5)) {
    const Outcome chosen = Simulated(spec, "auto", seed);
    ASSERT_TRUE(chosen.status.ok()) << chosen.status;
    EXPECT_EQ(chosen.reports.losses(), eager.reports.losses());
    ASSERT_EQ(chosen.notes.size(), 1u);
    EXPECT_THAT(chosen.notes[0], HasSubstr("rank 0: steps run "));
    EXPECT_THAT(chosen.notes[0], HasSubstr(" ms each, "));
  }
}

// Returns its input after a copy to the host, which prevents recording.
class Peeks : public nn::Module {
 public:
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    if (!ctx.computes()) return x;
    const auto host = nn::CopyToHost(ctx.kernels(), nn::Queue::kCompute, x);
    if (!host.ok()) return ctx.Fail(host.status());
    const absl::Status status = nn::Synchronize(
        ctx.kernels(), nn::Record(ctx.kernels(), nn::Queue::kCompute));
    return status.ok() ? x : ctx.Fail(status);
  }
};

TEST(CudaGraphJobTest, AStepThatCannotBeRecordedRunsAsBefore) {
  JobSpec spec = DropoutJob();
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<Peeks>();
    model->Append<nn::Linear>(784, 10);
    return model;
  };
  const Outcome eager = Simulated(spec, "off", 0);
  for (std::uint64_t seed : Seeds(5)) {
    const Outcome outcome = Simulated(spec, "on", seed);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.reports.losses(), eager.reports.losses());
    EXPECT_THAT(outcome.notes,
                ElementsAre(HasSubstr("not as a graph: a copy from or to the "
                                      "host's memory is not recorded")));
  }
}

TEST(CudaGraphJobTest, RanksThatReduceByNccl) {
  JobSpec spec = DropoutJob();
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
  const Outcome eager = Simulated(spec, "off", 0);
  ASSERT_TRUE(eager.status.ok()) << eager.status;
  for (std::uint64_t seed : Seeds(10)) {
    const Outcome graph = Simulated(spec, "on", seed);
    ASSERT_TRUE(graph.status.ok()) << graph.status << ReplayCommand(seed);
    EXPECT_THAT(graph.notes,
                UnorderedElementsAre("rank 0: steps run as a graph",
                                     "rank 1: steps run as a graph"));
    EXPECT_EQ(graph.reports.losses(), eager.reports.losses())
        << ReplayCommand(seed);
    EXPECT_EQ(graph.evaluations(), eager.evaluations()) << ReplayCommand(seed);
  }
  EXPECT_THAT(Simulated(spec, "auto", 1).notes, IsEmpty());
}

TEST(CudaGraphJobTest, RanksThatReduceByNcclOnThreadsOfTheirOwn) {
  JobSpec spec = DropoutJob();
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
  const Outcome want = Simulated(spec, "off", 0);
  spec.cuda_graphs = "on";
  for (std::uint64_t seed : Seeds(5)) {
    emulated_cuda::Options options = EmulatedWorld::OptionsOf(seed);
    options.stall_seconds = 20;  // another thread may be about to go on
    const EmulatedWorld world(options);
    EXPECT_EQ(ReportsOf(spec).losses(), want.reports.losses()) << seed;
  }
}

TEST(CudaGraphJobTest, RanksThatMeetOnTheHostRunAsBefore) {
  JobSpec spec = DropoutJob();
  spec.device = *nn::Device::Parse("cuda:0");
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
  const Outcome eager = Simulated(spec, "off", 0);
  const Outcome outcome = Simulated(spec, "on", 1);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.reports.losses(), eager.reports.losses());
}

TEST(CudaGraphJobTest, ALossThatIsNoNumberEndsTheJob) {
  for (std::uint64_t seed : Seeds(5)) {
    JobSpec spec = DropoutJob();
    spec.optimizer = [] {
      nn::SgdOptions sgd;
      sgd.lr = 1e30;
      return std::make_unique<nn::Sgd>(sgd);
    };
    EXPECT_EQ(Simulated(spec, "on", seed).status.message(),
              Simulated(spec, "off", 0).status.message());
  }
}

TEST(CudaGraphJobTest, OtherWordsAreRefused) {
  JobSpec spec = LeNetJob();
  spec.cuda_graphs = "yes";
  const absl::Status status = RunJob(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "JobSpec.cuda_graphs = \"yes\": must be \"auto\", \"on\" or "
            "\"off\"");
}

}  // namespace
}  // namespace troupe::actors
