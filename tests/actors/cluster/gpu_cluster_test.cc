// Jobs of several processes whose ranks have emulated GPUs, with the transports
// of production: NCCL, and staging through the host. The "processes" are
// threads of the test, since the emulated GPUs, and the NCCL between them, live
// in one process.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "tests/actors/cluster/cluster_run.h"
#include "tests/actors/emulated_job.h"
#include "tests/actors/sim/divided_jobs.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::actors {
namespace {

using nn::cuda::EmulatedWorld;
using testing::HasSubstr;

emulated_cuda::Options GpusOf(int gpus) {
  emulated_cuda::Options options = EmulatedWorld::OptionsOf(/*seed=*/1);
  options.devices = gpus;
  options.stall_seconds = 60;  // another thread may be about to go on
  return options;
}

JobSpec LeNetJob(int dp, int pp, const std::string& order) {
  JobSpec spec = EmulatedLeNetJob("cuda", dp, pp);
  spec.plan.reduction_order = order;
  return spec;
}

// Returns process 0's reports of a run in processes with these numbers of
// ranks.
Reports Apart(const JobSpec& spec, std::vector<int> ranks) {
  Reports reports;
  ClusterRun run;
  run.ranks = std::move(ranks);
  run.observer = [&](int process) { return process == 0 ? &reports : nullptr; };
  for (const ProcessEnd& end : RunInThreads(spec, run)) {
    EXPECT_TRUE(end.result.ok()) << end.result.status();
  }
  return reports;
}

TEST(GpuClusterTest, TwoProcessesReduceByNccl) {
  const EmulatedWorld world(GpusOf(2));
  const JobSpec spec = LeNetJob(2, 1, "auto");
  const Reports reports = Apart(spec, {1, 1});
  EXPECT_EQ(reports.info.plan.reduction_order, "any");
  ExpectTheNumbersOfTheCpu(reports, spec);
}

TEST(GpuClusterTest, TheHostHasTheBitsOfTheTree) {
  const JobSpec spec = LeNetJob(2, 1, "tree");
  std::vector<double> apart, together;
  {
    const EmulatedWorld world(GpusOf(2));
    const Reports reports = Apart(spec, {1, 1});
    EXPECT_EQ(reports.info.plan.reduction_order, "tree");
    apart = reports.losses();
    ExpectTheNumbersOfTheCpu(reports, spec);
  }
  {
    const EmulatedWorld world(GpusOf(2));
    together = ReportsOf(spec).losses();
  }
  EXPECT_EQ(apart, together);
}

TEST(GpuClusterTest, StagesOfTwoProcesses) {
  const EmulatedWorld world(GpusOf(2));
  const JobSpec spec = LeNetJob(1, 2, "auto");
  ExpectTheNumbersOfTheCpu(Apart(spec, {1, 1}), spec);
}

TEST(GpuClusterTest, TwoReplicasOfTwoStagesInTwoProcesses) {
  for (const char* order : {"any", "tree"}) {
    const EmulatedWorld world(GpusOf(4));
    const JobSpec spec = LeNetJob(2, 2, order);
    ExpectTheNumbersOfTheCpu(Apart(spec, {2, 2}), spec);
  }
}

TEST(GpuClusterTest, ResumesFromACheckpoint) {
  JobSpec whole = LeNetJob(2, 1, "any");
  whole.steps = 5;
  std::vector<double> want;
  {
    const EmulatedWorld world(GpusOf(2));
    want = Apart(whole, {1, 1}).losses();
  }
  JobSpec first = LeNetJob(2, 1, "any");
  first.checkpoint.dir = FreshFolder("checkpoints");
  {
    const EmulatedWorld world(GpusOf(2));
    Apart(first, {1, 1});
  }
  JobSpec second = whole;
  second.checkpoint = first.checkpoint;
  second.checkpoint.resume = true;
  const EmulatedWorld world(GpusOf(2));
  const Reports resumed = Apart(second, {1, 1});
  ASSERT_EQ(resumed.steps.size(), 2u);
  EXPECT_EQ(resumed.losses().back(), want.back());
}

// Returns two steps of a GPT, with clipped gradients, whose ranks along tp have
// pieces of its layers and of its odd vocabulary.
JobSpec GptOnGpus(const Layout& layout, const std::string& order) {
  JobSpec spec = GptJob(layout, SgdThatClips());
  spec.model = [] {
    nn::Gpt2Options options;
    options.layers = 1;
    options.heads = 2;
    options.width = 8;
    options.context = 4;
    options.vocab_size = 7;
    return *nn::MakeGpt2(options);
  };
  spec.kernels = nullptr;  // the device has its own
  spec.device = *nn::Device::Parse("cuda");
  spec.plan.reduction_order = order;
  spec.plan.global_batch_size /= 2;
  spec.steps = 2;
  return spec;
}

// Expects the losses and norms of one rank on a CPU, and under "tree" the bits
// of one process.
void ExpectOneRanksNumbers(const Layout& layout, const std::string& order,
                           const std::vector<int>& ranks) {
  SCOPED_TRACE(absl::StrCat(layout.ToString(), ", ", order));
  const JobSpec spec = GptOnGpus(layout, order);
  JobSpec one = GptOnGpus({1, 1, 1}, "auto");
  one.device = nn::Device{};
  const int gpus = spec.plan.mesh.size();
  std::vector<double> apart;
  {
    const EmulatedWorld world(GpusOf(gpus));
    const Reports reports = Apart(spec, ranks);
    ExpectNear(reports, ReportsOf(one));
    apart = reports.losses();
  }
  if (order != "tree") return;
  const EmulatedWorld world(GpusOf(gpus));
  EXPECT_EQ(apart, ReportsOf(spec).losses()) << "in one process";
}

// Sums of layers are in processes apart: by NCCL, and on the host.
TEST(GpuClusterTest, PiecesOfTwoProcesses) {
  for (const char* order : {"any", "tree"}) {
    ExpectOneRanksNumbers({/*tp=*/2, 1, 1}, order, {1, 1});
  }
  ExpectOneRanksNumbers({/*tp=*/2, 1, 1, /*zero=*/0, /*shares_tokens=*/true},
                        "any", {1, 1});
}

// The first process has one half of a replica, the second the rest.
TEST(GpuClusterTest, ReplicasOfPiecesInTwoProcesses) {
  for (const char* order : {"any", "tree"}) {
    ExpectOneRanksNumbers({/*tp=*/2, /*dp=*/2, 1, /*zero=*/1}, order, {1, 3});
  }
  ExpectOneRanksNumbers({/*tp=*/2, /*dp=*/2, 1, /*zero=*/2}, "any", {2, 2});
}

TEST(GpuClusterTest, EachRankOfAHostNeedsAGpu) {
  const EmulatedWorld world(GpusOf(1));
  ClusterRun run;
  run.ranks = {1, 1};
  const std::vector<ProcessEnd> ends =
      RunInThreads(LeNetJob(2, 1, "auto"), run);
  for (const ProcessEnd& end : ends) {
    EXPECT_EQ(end.result.status().code(), absl::StatusCode::kUnavailable)
        << end.result.status();
    EXPECT_THAT(std::string(end.result.status().message()),
                HasSubstr("2 ranks of this host need a GPU each, and this "
                          "process sees 1 GPU"));
  }
}

}  // namespace
}  // namespace troupe::actors
