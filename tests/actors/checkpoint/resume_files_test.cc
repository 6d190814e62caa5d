// A resumed job closes the files of its checkpoint when all ranks have read
// them, so that the disk has their space again once `keep` removes them.

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// Number of files of tensors that this process has open, with `folder` in their
// paths.
int OpenTensorFiles(const std::string& folder) {
  base::PosixFileSystem files;
  const std::vector<std::string> fds = *files.List("/proc/self/fd");
  int open = 0;
  for (const std::string& fd : fds) {
    char target[4096];
    const ssize_t n = readlink(absl::StrCat("/proc/self/fd/", fd).c_str(),
                               target, sizeof(target));
    if (n <= 0) continue;
    const absl::string_view path(target, static_cast<std::size_t>(n));
    open += absl::StrContains(path, folder) &&
            absl::StrContains(path, ".safetensors");
  }
  return open;
}

class CountsFiles : public Reports {
 public:
  explicit CountsFiles(const std::string& folder) : folder_(folder) {}
  void OnStart(const JobInfo& info) override {
    Reports::OnStart(info);
    at_start = OpenTensorFiles(folder_);
  }
  void OnSteps(absl::Span<const StepReport> reports) override {
    if (steps.empty()) after_a_step = OpenTensorFiles(folder_);
    Reports::OnSteps(reports);
  }

  int at_start = -1, after_a_step = -1;

 private:
  const std::string folder_;
};

TEST(ResumeFilesTest, AreClosedWhenAllRanksHaveReadThem) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/3);
  spec.checkpoint.dir = FreshFolder("open");
  spec.checkpoint.resume = true;
  ASSERT_TRUE(RunJob(spec).ok());
  spec.steps = 6;
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  spec.plan.cuts = {6};
  CountsFiles counts("_open/step-00000003");
  const absl::StatusOr<JobResult> result = RunJob(spec, &counts);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(counts.at_start, 2) << "model and optimizer";
  EXPECT_EQ(counts.after_a_step, 0);
}

}  // namespace
}  // namespace troupe::actors
