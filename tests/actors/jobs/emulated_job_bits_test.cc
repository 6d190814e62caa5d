// Jobs on emulated GPUs give the bits that tests/golden/emulated_job_bits.txt
// remembers, with steps that run op by op and with steps that are recorded as a
// graph. A change that alters a bit on purpose writes the file anew:
//
//   bazel build //tests/actors/jobs:emulated_job_bits_test
//   export TROUPE_REWRITE=tests/golden/emulated_job_bits.txt
//   bazel-bin/tests/actors/jobs/emulated_job_bits_test
//
// The kernels are those of GPUs, compiled for the CPU, with plain loops in
// place of cuBLASLt and cuDNN. They use no instruction set that some CPUs lack.

#include <cstdint>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "nn/optim/adam.h"
#include "pipeline/plan_json.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/emulated_job.h"
#include "tests/actors/jobs/bits/bit_jobs.h"
#include "tests/actors/jobs/bits/golden_lines.h"
#include "tests/actors/jobs/bits/job_bits.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::actors {
namespace {

using nn::cuda::EmulatedWorld;

constexpr char kGolden[] = "tests/golden/emulated_job_bits.txt";
constexpr std::int64_t kSteps = 5;  // 2 to warm up, the capture, 2 launches

struct EmulatedCase {
  std::string name;
  JobSpec spec;
  bool records;  // whether cuda_graphs = "on" makes ranks record their steps
};

void PrintTo(const EmulatedCase& one, std::ostream* out) { *out << one.name; }

// Returns a job with several buckets. It evaluates nothing: evaluations take
// most of the time of EmulatedLeNetJob().
JobSpec LeNet(const std::string& device, int dp, int pp) {
  JobSpec spec = EmulatedLeNetJob(device, dp, pp, kSteps);
  spec.test = nullptr;
  return spec;
}

// Evaluates between two launches and at the end.
JobSpec Evaluated(JobSpec spec) {
  spec.test = TinyCnnJob(/*dp=*/1, /*steps=*/1).test;
  spec.eval_every = 4;
  return spec;
}

// Returns a job with dropout, and with a loss scale that is too large for the
// first steps, which are skipped.
JobSpec ScaledDropout(int dp) {
  JobSpec spec = LeNet("cuda", dp, /*pp=*/1);
  spec.model = MakeDropoutMlp;
  spec.optimizer = [] {
    nn::AdamOptions adam;
    adam.lr = 0.01;
    adam.common.skip_nonfinite = true;
    return std::make_unique<nn::Adam>(adam);
  };
  spec.steps = 10;
  spec.loss_scale = 0x1p127;
  spec.dynamic_loss_scale.emplace().growth_interval = 2;
  return spec;
}

JobSpec InBF16(JobSpec spec) {
  TrainInBF16(spec);
  return spec;
}

JobSpec Clipped(JobSpec spec) {
  ClipByNorm(spec);
  return spec;
}

JobSpec InUnevenMicroBatches(JobSpec spec) {
  spec.plan.micro_batch_size = 3;  // the batch has 4 samples
  return spec;
}

// Reduces in the order of the tree that ranks on CPUs use, without NCCL.
JobSpec ByTree(JobSpec spec) {
  spec.plan.reduction_order = pipeline::kTreeReduction;
  return spec;
}

JobSpec OverlappingSteps(JobSpec spec) {
  spec.plan.cross_step = true;
  return spec;
}

// Returns a job of a GPT of two blocks with a tied head. Pipelines have two
// micro-batches.
JobSpec Gpt(int dp, int pp) {
  nn::Gpt2Options options = SmallGptOptions();
  options.layers = 2;
  JobSpec spec = GptJob(dp, pp, options);
  spec.kernels = nullptr;
  spec.device = *nn::Device::Parse("cuda");
  spec.steps = kSteps;
  spec.plan.global_batch_size = spec.plan.micro_batch_size * dp * pp;
  if (pp == 2) spec.plan.cuts = {"h.1"};
  return spec;
}

JobSpec InAV(JobSpec spec) {
  spec.plan.cuts = {"h.0", "h.1", "ln_f"};
  EXPECT_TRUE(pipeline::SetSchedule("zb_v", spec.plan).ok());
  return spec;
}

const std::vector<EmulatedCase>& EmulatedCases() {
  static const auto* const cases = new std::vector<EmulatedCase>{
      {"lenet", Evaluated(LeNet("cuda", 1, 1)), true},
      {"lenet uneven micro-batches", InUnevenMicroBatches(LeNet("cuda", 1, 1)),
       true},
      {"lenet bf16", InBF16(LeNet("cuda", 1, 1)), true},
      {"lenet clipped", Clipped(LeNet("cuda", 1, 1)), true},
      {"lenet dp=2", LeNet("cuda", 2, 1), true},
      {"lenet dp=2 bf16", InBF16(LeNet("cuda", 2, 1)), true},
      {"lenet dp=2 clipped", Clipped(LeNet("cuda", 2, 1)), true},
      {"lenet dp=2 cross-step", OverlappingSteps(LeNet("cuda", 2, 1)), true},
      {"lenet dp=2 by tree", ByTree(LeNet("cuda", 2, 1)), false},
      {"lenet dp=2 on one GPU", LeNet("cuda:0", 2, 1), false},
      {"lenet pp=2", LeNet("cuda", 1, 2), false},
      {"lenet dp=2 pp=2", LeNet("cuda", 2, 2), false},
      {"dropout scaled", ScaledDropout(1), true},
      {"dropout scaled dp=2", ScaledDropout(2), true},
      {"gpt", Gpt(1, 1), true},
      {"gpt dp=2", Gpt(2, 1), true},
      {"gpt pp=2", Gpt(1, 2), false},
      {"gpt dp=2 pp=2 zb_v", InAV(Gpt(2, 2)), false},
  };
  return *cases;
}

std::vector<EmulatedCase> CasesToRun() {
  std::vector<EmulatedCase> cases;
  for (const std::uint64_t number : Cases(EmulatedCases().size())) {
    cases.push_back(EmulatedCases()[number]);
  }
  return cases;
}

class EmulatedJobBitsTest : public testing::TestWithParam<EmulatedCase> {
 protected:
  // Runs the case in one thread and expects its lines of the golden file.
  void ExpectTheGoldenBits(const std::string& graphs) {
    SCOPED_TRACE(absl::StrCat("cuda_graphs = ", graphs));
    const EmulatedCase& one = GetParam();
    JobSpec spec = one.spec;
    spec.cuda_graphs = graphs;
    spec.checkpoint.dir = FreshFolder(graphs);
    int recorded = 0;
    spec.note = [&](const std::string& line) {
      recorded += absl::EndsWith(line, "steps run as a graph");
    };
    const EmulatedWorld world(EmulatedGpus(/*seed=*/1, spec.plan.mesh.size()));
    Reports reports;
    Simulation simulation(spec, {});
    const absl::Status status = simulation.Run(&reports).status();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(recorded,
              one.records && graphs == "on" ? spec.plan.mesh.size() : 0);
    reports.info.plan = simulation.plan();
    const JobBits bits = BitsOf(reports);
    ExpectGoldenLine(kGolden, one.name, bits.numbers);
    ExpectGoldenLine(kGolden, one.name + " reports", bits.reports);
    if (!ExpectGoldenLine(kGolden, one.name + " plan", bits.plan)) {
      ADD_FAILURE() << pipeline::PlanToJson(PortablePlan(reports.info.plan));
    }
  }
};

TEST_P(EmulatedJobBitsTest, AreThoseOfTheGoldenFile) {
  if (GetParam().records) ExpectTheGoldenBits("off");
  ExpectTheGoldenBits("on");
}

INSTANTIATE_TEST_SUITE_P(Jobs, EmulatedJobBitsTest,
                         testing::ValuesIn(CasesToRun()), [](const auto& info) {
                           return TestNameOf(info.param.name);
                         });

TEST(EmulatedJobBitsTableTest, HasACaseForEachLineOfTheGoldenFile) {
  std::set<std::string> names;
  for (const EmulatedCase& one : EmulatedCases()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name << " twice";
    names.insert(one.name + " reports");
    names.insert(one.name + " plan");
  }
  ExpectNoOtherGoldenLines(kGolden, names);
}

}  // namespace
}  // namespace troupe::actors
