// Jobs whose ranks live in several processes have the same results, to the bit,
// as in one process.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "base/field_error.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "tests/actors/cluster/cluster_run.h"
#include "tests/actors/skip_models.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

struct Layout {
  std::vector<int> ranks;
  Transport transport = Transport::kAuto;
};

std::string NameOf(const testing::TestParamInfo<Layout>& info) {
  std::string name = info.param.transport == Transport::kTcp ? "tcp" : "shm";
  for (int ranks : info.param.ranks) absl::StrAppend(&name, "_", ranks);
  return name;
}

int Sum(const std::vector<int>& ranks) {
  int sum = 0;
  for (int each : ranks) sum += each;
  return sum;
}

class ClusterJobTest : public testing::TestWithParam<Layout> {
 protected:
  static ClusterRun Run() {
    ClusterRun run;
    run.ranks = GetParam().ranks;
    run.transport = GetParam().transport;
    return run;
  }
  static JobSpec Spec(const std::string& folder) {
    const int ranks = Sum(GetParam().ranks);
    JobSpec spec = TinyCnnJob(ranks, /*steps=*/12);
    spec.plan.global_batch_size = 8 * ranks;
    spec.plan.inline_bytes = 0;
    spec.checkpoint.dir = FreshFolder(folder);
    return spec;
  }
  static void ExpectTheSameFiles(const std::string& a, const std::string& b) {
    base::PosixFileSystem files;
    const std::vector<std::string> names = *files.List(a);
    int compared = 0;
    for (const std::string& file : names) {
      if (!absl::EndsWith(file, ".safetensors")) continue;
      ++compared;
      EXPECT_TRUE(FileBytes(absl::StrCat(a, "/", file)) ==
                  FileBytes(absl::StrCat(b, "/", file)))
          << file;
    }
    EXPECT_GE(compared, 2);
  }
  // Runs the job in one process, and in the processes of GetParam().
  static void ExpectTheSame(const JobSpec& spec) {
    JobSpec apart = spec;
    apart.checkpoint.dir = FreshFolder(spec.checkpoint.dir + "_apart");
    const Reports together = ReportsOf(spec);
    ClusterRun run = Run();
    Reports reports;
    run.observer = [&](int process) {
      return process == 0 ? &reports : nullptr;
    };
    for (const ProcessEnd& end : RunInThreads(apart, run)) {
      EXPECT_TRUE(end.result.ok()) << end.result.status();
      if (!end.result.ok()) continue;
      EXPECT_EQ(end.result->steps, 12);
      EXPECT_EQ(end.result->loss, together.losses().back());
    }
    EXPECT_EQ(reports.losses(), together.losses());
    ExpectTheSameFiles(reports.checkpoints.back(), together.checkpoints.back());
  }
};

TEST_P(ClusterJobTest, LaunchedReductions) { ExpectTheSame(Spec("launched")); }

TEST_P(ClusterJobTest, InlineReductions) {
  JobSpec spec = Spec("inline");
  spec.plan.inline_bytes = 1 << 30;
  ExpectTheSame(spec);
}

// Each rank has a stage, and skip connections pass through processes that do
// not use them. The results are those of one rank that has the whole model.
TEST_P(ClusterJobTest, StagesWithSkipConnections) {
  JobSpec spec = Spec("skips");
  spec.model = ImageUNet();
  spec.checkpoint.dir.clear();
  spec.steps = 4;
  spec.plan.micro_batch_size = 4;
  spec.plan.mesh = pipeline::Mesh();
  const Reports whole = ReportsOf(spec);
  const int stages = Sum(GetParam().ranks);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, stages);
  for (int stage = 1; stage < stages; ++stage) {
    spec.plan.cuts.emplace_back(stage * kImageUNetModules / stages);
  }
  ClusterRun run = Run();
  Reports reports;
  run.observer = [&](int process) { return process == 0 ? &reports : nullptr; };
  for (const ProcessEnd& end : RunInThreads(spec, run)) {
    EXPECT_TRUE(end.result.ok()) << end.result.status();
  }
  EXPECT_EQ(reports.losses(), whole.losses());
  ASSERT_EQ(reports.evaluations.size(), 1u);
  EXPECT_EQ(reports.evaluations[0].loss, whole.evaluations[0].loss);
  EXPECT_FALSE(reports.info.plan.stages.back().skips.empty());
}

// Each rank has a stage, and the first and the last share a matrix.
TEST_P(ClusterJobTest, StagesThatShareParameters) {
  JobSpec spec = Spec("tied");
  const int ranks = Sum(GetParam().ranks);
  spec.model = [ranks] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(28 * 28, 10);
    auto& first = model->Append<nn::Linear>(10, 10);
    for (int i = 0; i < ranks; ++i) model->Append<nn::Linear>(10, 10);
    model->Append<nn::Linear>(10, 10).TieParameter("weight", first, "weight");
    return model;
  };
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, ranks);
  spec.plan.micro_batch_size = 4;
  for (int stage = 1; stage < ranks; ++stage) {
    spec.plan.cuts.emplace_back(stage + 2);
  }
  ExpectTheSame(spec);
  JobSpec flat = spec;
  flat.plan.mesh = pipeline::Mesh();
  flat.plan.cuts.clear();
  EXPECT_EQ(ReportsOf(spec).losses(), ReportsOf(flat).losses());
}

TEST(ClusterResumeTest, AnotherSeedInAProcessIsBlamedThere) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/2);
  spec.checkpoint.dir = FreshFolder("seeds");
  spec.checkpoint.resume = true;
  ASSERT_TRUE(RunJob(spec).ok());
  spec.steps = 4;
  ClusterRun run;
  run.ranks = {1, 1};
  run.edit = [](int process, JobSpec& mine) { mine.seed += process; };
  const std::vector<ProcessEnd> ends = RunInThreads(spec, run);
  for (const ProcessEnd& end : ends) {
    EXPECT_TRUE(absl::IsInvalidArgument(end.result.status()));
    EXPECT_TRUE(absl::StartsWith(end.result.status().message(), "process 1 ("))
        << end.result.status();
  }
  EXPECT_EQ(base::FieldsOf(ends[1].result.status()),
            std::vector<std::string>{"JobSpec.seed"});
}

// Runs a job of two processes, each with a folder of checkpoints of its own.
// Appends to `warnings` those of process 1.
std::vector<ProcessEnd> RunInTwoFolders(JobSpec spec,
                                        std::vector<std::string>* warnings) {
  ClusterRun run;
  run.ranks = {1, 1};
  const std::string folders[] = {FreshFolder("own0"), FreshFolder("own1")};
  run.edit = [&](int process, JobSpec& mine) {
    mine.checkpoint.dir = folders[process];
    if (process == 0) return;
    mine.cluster->warn = [warnings](const std::string& words) {
      warnings->push_back(words);
    };
  };
  return RunInThreads(spec, run);
}

TEST(ClusterFolderTest, AWriterInAnotherFolderIsFoundAtTheStart) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/4);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.cuts = {2};
  std::vector<std::string> warnings;
  for (const ProcessEnd& end : RunInTwoFolders(spec, &warnings)) {
    const absl::Status& status = end.result.status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_TRUE(absl::StartsWith(status.message(), "process 1 (")) << status;
    EXPECT_TRUE(absl::StrContains(
        status.message(), "own1/.job, and it is not there for this process"))
        << status;
  }
}

TEST(ClusterFolderTest, AReplicaThatWritesNothingIsWarned) {
  const JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/4);
  std::vector<std::string> warnings;
  for (const ProcessEnd& end : RunInTwoFolders(spec, &warnings)) {
    ASSERT_TRUE(end.result.ok()) << end.result.status();
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(
      warnings[0], "own1/.job, and it is not there for this process"))
      << warnings[0];
}

// It sends its slices to the first process, which writes the whole tensors.
TEST(ClusterFolderTest, AnOwnerWithoutTheFolderSendsItsSlices) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/4);
  spec.plan.zero_stage = 1;
  std::vector<std::string> warnings;
  std::string saved;
  for (const ProcessEnd& end : RunInTwoFolders(spec, &warnings)) {
    ASSERT_TRUE(end.result.ok()) << end.result.status();
    saved = end.result->checkpoint;
  }
  EXPECT_EQ(warnings.size(), 1u);
  spec.checkpoint.dir = FreshFolder("in_place");
  const std::string in_place = ReportsOf(spec).checkpoints.back();
  for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
    EXPECT_TRUE(FileBytes(saved + file) == FileBytes(in_place + file)) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, ClusterJobTest,
                         testing::Values(Layout{{1, 1}, Transport::kShm},
                                         Layout{{1, 1}, Transport::kTcp},
                                         Layout{{2, 1}, Transport::kTcp},
                                         Layout{{1, 1, 1}, Transport::kShm},
                                         Layout{{2, 2}, Transport::kShm},
                                         Layout{{1, 1, 1, 1}, Transport::kTcp}),
                         NameOf);

}  // namespace
}  // namespace troupe::actors
