// Whole jobs give the bits that they gave when tests/golden/job_bits.txt was
// written: every loss, every byte of the last checkpoint's tensors, and the
// plan. A change that alters a bit on purpose writes the file anew and says so:
//
//   bazel build //tests/actors/jobs:job_bits_test
//   export TROUPE_REWRITE=tests/golden/job_bits.txt
//   bazel-bin/tests/actors/jobs/job_bits_test
//
// The kernels are Troupe's own loops: what oneDNN generates depends on the
// maker of the CPU. A case whose instruction set this CPU lacks is skipped, and
// its line is left alone.
//
// A plan that differs is printed. To see the earlier one, remove its line from
// the golden file and run the test of the earlier version.

#include "tests/actors/jobs/bits/job_bits.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "base/cpu_isa.h"
#include "base/files/file_system.h"
#include "base/fnv_hash.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "pipeline/plan_json.h"
#include "tests/actors/jobs/bits/bit_cases.h"
#include "tests/actors/jobs/bits/bit_jobs.h"
#include "tests/actors/jobs/bits/golden_lines.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

constexpr char kGolden[] = "tests/golden/job_bits.txt";
// A checkpoint of MlpJob() after 5 steps, by version 0.1. It shows that
// checkpoints of earlier versions are read, so nothing writes it anew: one of a
// later format gets a folder of its own beside it.
constexpr char kCheckpoint[] = "tests/golden/checkpoints/mlp";
constexpr std::uint64_t kCheckpointHash = 0x3dfbaeeb896b07e5u;
constexpr char kResumed[] = "mlp resumed plain";

// Returns all cases, or some of them under sanitizers.
std::vector<BitCase> CasesToRun() {
  std::vector<BitCase> cases;
  for (const std::uint64_t number : Cases(BitCases().size())) {
    cases.push_back(BitCases()[number]);
  }
  return cases;
}

class JobBitsTest : public testing::TestWithParam<BitCase> {};

TEST_P(JobBitsTest, AreThoseOfTheGoldenFile) {
  const BitCase& one = GetParam();
  if (one.isa > base::BestCpuIsa()) GTEST_SKIP() << "no " << one.kernels;
  JobSpec spec = one.spec;
  spec.checkpoint.dir = FreshFolder("checkpoints");
  const Reports reports = ReportsOf(spec);
  const JobBits bits = BitsOf(reports);
  ExpectGoldenLine(kGolden, one.line(), bits.numbers);
  if (!one.has_reports_and_plan()) return;
  ExpectGoldenLine(kGolden, one.reports_line(), bits.reports);
  if (!ExpectGoldenLine(kGolden, one.plan_line(), bits.plan)) {
    ADD_FAILURE() << pipeline::PlanToJson(PortablePlan(reports.info.plan));
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, JobBitsTest, testing::ValuesIn(CasesToRun()),
                         [](const auto& info) {
                           return TestNameOf(info.param.line());
                         });

TEST(JobBitsTableTest, LeavesNothingToTheMachine) {
  for (const BitCase& one : BitCases()) {
    EXPECT_GE(one.spec.plan.inline_bytes, 0) << one.name;
    EXPECT_NE(one.spec.kernels, nullptr) << one.name;
  }
}

TEST(JobBitsTableTest, HasACaseForEachLineOfTheGoldenFile) {
  std::set<std::string> names = {kResumed};
  for (const BitCase& one : BitCases()) {
    EXPECT_TRUE(names.insert(one.line()).second) << one.line() << " twice";
    if (!one.has_reports_and_plan()) continue;
    names.insert(one.reports_line());
    names.insert(one.plan_line());
  }
  ExpectNoOtherGoldenLines(kGolden, names);
}

JobSpec MlpJob() {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/10);
  spec.model = [] { return nn::MakeMlp({28 * 28, 4, 10}, {}); };
  UseOwnLoops(base::CpuIsa::kPlain, spec);
  return spec;
}

constexpr const char* kCheckpointFiles[] = {
    "model.safetensors", "model.safetensors.index.json",
    "optimizer.safetensors", "trainer_state.json"};

TEST(ResumedJobBitsTest, TheOldCheckpointIsStillTheOldOne) {
  base::FnvHash hash;
  for (const char* file : kCheckpointFiles) {
    const std::string bytes =
        FileBytes(absl::StrCat(kCheckpoint, "/step-00000005/", file));
    hash.AddBlock(bytes.data(), bytes.size());
  }
  EXPECT_EQ(hash.value(), kCheckpointHash)
      << kCheckpoint << " was written anew; take it from the history";
}

TEST(ResumedJobBitsTest, GoOnFromAnOldCheckpoint) {
  JobSpec spec = MlpJob();
  spec.checkpoint.dir = FreshFolder("resumed");
  const std::string name = "step-00000005";
  base::PosixFileSystem files;
  ASSERT_TRUE(
      files.CreateFolder(absl::StrCat(spec.checkpoint.dir, "/", name)).ok());
  for (const char* file : kCheckpointFiles) {
    const std::string path = absl::StrCat(name, "/", file);
    ASSERT_TRUE(base::WriteWholeFile(
                    files, absl::StrCat(spec.checkpoint.dir, "/", path),
                    FileBytes(absl::StrCat(kCheckpoint, "/", path)))
                    .ok());
  }
  spec.checkpoint.resume = true;
  ExpectGoldenLine(kGolden, kResumed, BitsOf(ReportsOf(spec)).numbers);
}

}  // namespace
}  // namespace troupe::actors
