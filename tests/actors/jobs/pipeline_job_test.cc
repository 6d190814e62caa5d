// A small pipeline: the tutorial CNN in two stages on two ranks has the bits of
// one rank with the same micro-batches.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

// Returns a job of four micro-batches of 8 in `stages` stages.
JobSpec Pipelined(int stages, const std::string& folder) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/12);
  spec.plan.micro_batch_size = 8;
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, stages);
  if (stages == 2) spec.plan.cuts = {6};
  if (stages == 3) spec.plan.cuts = {3, 7};
  spec.checkpoint.dir = FreshFolder(folder);
  return spec;
}

// Returns all parameters and momenta of a checkpoint, by name, from all of its
// files.
std::vector<std::string> Contents(const std::string& path,
                                  const JobSpec& spec) {
  base::PosixFileSystem files;
  const Checkpoint checkpoint = *Checkpoint::Open(files, path);
  nn::CachingAllocator allocator;
  std::unique_ptr<nn::Module> model = spec.model();
  std::vector<std::string> contents;
  for (const nn::Parameter* parameter : model->Parameters()) {
    nn::Tensor tensor =
        nn::Tensor::Empty(parameter->shape, parameter->dtype, allocator);
    const auto append = [&] {
      contents.push_back(
          absl::StrCat(parameter->name, "=",
                       absl::string_view(static_cast<const char*>(tensor.raw()),
                                         tensor.bytes())));
    };
    EXPECT_TRUE(checkpoint.ReadModel(parameter->name, tensor).ok());
    append();
    EXPECT_TRUE(
        checkpoint
            .ReadOptimizer(absl::StrCat(parameter->name, ".momentum_buffer"),
                           tensor)
            .ok());
    append();
  }
  return contents;
}

TEST(PipelineJobTest, StagesEqualOneRankToTheBit) {
  const JobSpec one = Pipelined(1, "one");
  Reports alone;
  ASSERT_TRUE(RunJob(one, &alone).ok());
  for (int stages : {2, 3}) {
    const JobSpec spec = Pipelined(stages, absl::StrCat("stages", stages));
    Reports reports;
    const absl::StatusOr<JobResult> result = RunJob(spec, &reports);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(reports.losses(), alone.losses());
    EXPECT_EQ(Contents(reports.checkpoints.back(), spec),
              Contents(alone.checkpoints.back(), one));
    ASSERT_EQ(reports.evaluations.size(), 1u);
    EXPECT_EQ(reports.evaluations[0].count, 70);
    EXPECT_EQ(reports.evaluations[0].accuracy, alone.evaluations[0].accuracy);
    EXPECT_EQ(reports.evaluations[0].loss, alone.evaluations[0].loss);
  }
}

// The last stage computes no gradient of its input, and sends zeros.
TEST(PipelineJobTest, ALossThatDoesNotReachTheInputTrainsNothing) {
  std::vector<std::vector<std::string>> contents;
  for (int stages : {1, 2}) {
    JobSpec spec = Pipelined(stages, absl::StrCat("unreached", stages));
    spec.loss = [](nn::Context& ctx, const nn::Tensor& y, const nn::Tensor& t) {
      return nn::ops::SoftmaxCrossEntropy(ctx, y.Detached(), t);
    };
    Reports reports;
    const absl::StatusOr<JobResult> result = RunJob(spec, &reports);
    ASSERT_TRUE(result.ok()) << result.status();
    contents.push_back(Contents(reports.checkpoints.back(), spec));
  }
  EXPECT_EQ(contents[0], contents[1]);
}

TEST(PipelineJobTest, RunsTheGPipeTable) {
  Reports reports;
  ASSERT_TRUE(RunJob(Pipelined(2, "table"), &reports).ok());
  EXPECT_EQ(reports.info.plan.ranks[0].train.ToString(),
            "F0 SA0 F1 SA1 F2 SA2 F3 SA3 LR "
            "RG0 B0 RG1 B1 RG2 B2 RG3 B3 AR0 UP0");
  EXPECT_EQ(reports.info.plan.ranks[1].train.ToString(),
            "RA0 F0 RA1 F1 RA2 F2 RA3 F3 LR "
            "B0 SG0 B1 SG1 B2 SG2 B3 SG3 AR0 UP0");
}

// 1F1B: a stage first runs one forward for each stage after it.
pipeline::StepTable OneForwardOneBackward(const pipeline::Mesh& mesh, int stage,
                                          int micro_batches) {
  using pipeline::ActionKind;
  const int ahead = std::min(micro_batches, mesh.pp() - 1 - stage);
  pipeline::StepTable table;
  for (int m = 0; m < micro_batches + ahead; ++m) {
    if (m < micro_batches) {
      table.actions.push_back({ActionKind::kForward, m, {}});
    }
    if (m >= ahead) {
      table.actions.push_back({ActionKind::kBackward, m - ahead, {}});
    }
  }
  return table;
}

// Runs all forwards, then all input gradients, then all weight gradients.
pipeline::StepTable SplitBackward(const pipeline::Mesh&, int,
                                  int micro_batches) {
  using pipeline::ActionKind;
  pipeline::StepTable table;
  for (ActionKind kind : {ActionKind::kForward, ActionKind::kBackwardInputs,
                          ActionKind::kBackwardWeights}) {
    for (int m = 0; m < micro_batches; ++m) {
      table.actions.push_back({kind, m, {}});
    }
  }
  return table;
}

TEST(PipelineJobTest, SchedulesOfOnesOwnGiveTheSameBits) {
  Reports alone;
  ASSERT_TRUE(RunJob(Pipelined(1, "alone"), &alone).ok());
  for (const pipeline::ScheduleFn& schedule :
       {pipeline::ScheduleFn(OneForwardOneBackward),
        pipeline::ScheduleFn(SplitBackward)}) {
    for (int stages : {1, 2, 3}) {
      JobSpec spec = Pipelined(stages, absl::StrCat("own", stages));
      spec.plan.schedule = schedule;
      Reports reports;
      const absl::StatusOr<JobResult> result = RunJob(spec, &reports);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(reports.losses(), alone.losses())
          << reports.info.plan.ToString();
    }
  }
}

TEST(PipelineJobTest, EvaluationHasCredits) {
  Reports reports;
  ASSERT_TRUE(RunJob(Pipelined(3, "credits"), &reports).ok());
  const auto& ranks = reports.info.plan.ranks;
  EXPECT_EQ(ranks[0].evaluate.ToString(), "F0 SA0 RG0");
  EXPECT_EQ(ranks[1].evaluate.ToString(), "RA0 F0 SA0 SG0 RG0");
  EXPECT_EQ(ranks[2].evaluate.ToString(), "RA0 F0 SG0");
}

TEST(PipelineJobTest, StagesTimesReplicasEqualReplicas) {
  JobSpec replicas = TinyCnnJob(/*dp=*/2, /*steps=*/8);
  replicas.plan.micro_batch_size = 4;
  Reports flat;
  ASSERT_TRUE(RunJob(replicas, &flat).ok());
  replicas.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  replicas.plan.cuts = {7};
  Reports cut;
  const absl::StatusOr<JobResult> result = RunJob(replicas, &cut);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(cut.losses(), flat.losses());
}

// Expects a run in `stages` stages that resumes in one stage from its
// checkpoint to equal a run that was always in one stage.
void ExpectToGoOnUncut(int stages, std::int64_t micro_batch_size) {
  JobSpec spec = Pipelined(stages, "cut");
  spec.plan.micro_batch_size = micro_batch_size;
  JobSpec whole = Pipelined(1, "straight");
  whole.plan.micro_batch_size = micro_batch_size;
  spec.steps = 6;
  Reports first, second, straight;
  ASSERT_TRUE(RunJob(spec, &first).ok());
  spec.plan.mesh = pipeline::Mesh(1);
  spec.plan.cuts.clear();
  spec.steps = 12;
  spec.checkpoint.resume = true;
  const absl::StatusOr<JobResult> resumed = RunJob(spec, &second);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  ASSERT_TRUE(RunJob(whole, &straight).ok());
  std::vector<double> joined = first.losses();
  for (double loss : second.losses()) joined.push_back(loss);
  EXPECT_EQ(joined, straight.losses());
  EXPECT_EQ(second.evaluations.back().loss, straight.evaluations.back().loss);
}

TEST(PipelineJobTest, ACheckpointOfStagesLoadsUncut) {
  ExpectToGoOnUncut(/*stages=*/2, /*micro_batch_size=*/8);
}

// The micro-batches have 12, 12 and 8 samples.
TEST(PipelineJobTest, ASmallerLastMicroBatchGoesOnUncut) {
  ExpectToGoOnUncut(/*stages=*/3, /*micro_batch_size=*/12);
}

TEST(PipelineJobTest, SimulatedUnderManySeeds) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/2);
  spec.kernels = [] {
    nn::CpuKernelOptions cpu;
    cpu.onednn = false;
    return nn::CreateCpuKernels(cpu);
  };
  spec.plan.global_batch_size = 16;
  spec.plan.micro_batch_size = 2;
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/3);
  spec.plan.cuts = {3, 7};
  spec.test = nullptr;
  std::vector<double> losses;
  for (const std::uint64_t seed : Seeds(40)) {
    Reports reports;
    SimulationOptions options;
    options.seed = seed;
    Simulation simulation(spec, options);
    const absl::StatusOr<JobResult> result = simulation.Run(&reports);
    ASSERT_TRUE(result.ok()) << result.status() << ReplayCommand(seed);
    const absl::Status invariants = CheckInvariants(
        simulation.recorder(), simulation.plan(), 0, spec.steps);
    ASSERT_TRUE(invariants.ok()) << invariants << ReplayCommand(seed);
    if (losses.empty()) losses = reports.losses();
    ASSERT_EQ(reports.losses(), losses) << ReplayCommand(seed);
  }
}

}  // namespace
}  // namespace troupe::actors
