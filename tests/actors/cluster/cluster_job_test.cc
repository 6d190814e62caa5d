// Jobs whose ranks live in several processes have the bits of those in one.

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "gtest/gtest.h"
#include "tests/actors/cluster/cluster_run.h"
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
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      EXPECT_TRUE(FileBytes(absl::StrCat(a, "/", file)) ==
                  FileBytes(absl::StrCat(b, "/", file)))
          << file;
    }
  }
  // In one process, and as GetParam() says.
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
