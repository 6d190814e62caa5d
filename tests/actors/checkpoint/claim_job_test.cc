// Tests that jobs write checkpoints into one folder one at a time.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/claim.h"
#include "actors/job.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

JobSpec SavingJob(std::int64_t steps, const std::string& dir) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, steps);
  spec.test = nullptr;
  spec.checkpoint.dir = dir;
  return spec;
}

TEST(ClaimJobTest, ASecondJobIsRefusedWhileTheFirstIsThere) {
  const std::string dir = FreshFolder("shared");
  absl::StatusOr<std::unique_ptr<Job>> first =
      Job::Start(SavingJob(1'000'000, dir), nullptr);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = RunJob(SavingJob(1, dir)).status();
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
  EXPECT_TRUE(absl::StrContains(second.message(), dir + "/.lock")) << second;
  first->reset();
  EXPECT_TRUE(RunJob(SavingJob(1, dir)).ok());
}

TEST(ClaimJobTest, AJobTakesOverItsCallersClaim) {
  const std::string dir = FreshFolder("handed");
  base::PosixFileSystem files;
  JobSpec spec = SavingJob(1, dir);
  spec.checkpoint.claim = *ClaimCheckpoints(files, dir);
  EXPECT_TRUE(RunJob(spec).ok());
  EXPECT_FALSE(RunJob(SavingJob(1, dir)).ok()) << "the caller still has it";
}

TEST(ClaimJobTest, BeginsWithoutWhatOthersLeftUnfinished) {
  const std::string dir = FreshFolder("crashes");
  base::PosixFileSystem files;
  for (int pid = 1; pid <= 3; ++pid) {
    const std::string name = absl::StrCat(dir, "/step-00000500.tmp-", pid);
    ASSERT_TRUE(files.CreateFolder(name).ok());
  }
  // The job has not written anything itself yet.
  const absl::StatusOr<std::unique_ptr<Job>> job =
      Job::Start(SavingJob(1'000'000, dir), nullptr);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(*files.List(dir), std::vector<std::string>{".lock"});
}

}  // namespace
}  // namespace troupe::actors
