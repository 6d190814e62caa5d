// Jobs over real processes: children of the test, over TLS on loopback.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "gtest/gtest.h"
#include "tests/actors/cluster/cluster_run.h"
#include "tests/actors/skip_models.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

TEST(ProcessJobTest, FourProcessesHaveTheBitsOfOne) {
  JobSpec spec = TinyCnnJob(4, /*steps=*/12);
  spec.plan.global_batch_size = 32;
  spec.plan.inline_bytes = 0;
  spec.checkpoint.dir = FreshFolder("apart");
  ClusterRun run;
  run.ranks = {1, 1, 1, 1};
  run.edit = [](int, JobSpec& mine) {
    mine.cluster->insecure = getenv("INSECURE") != nullptr;
  };
  ChildProcesses children(spec, run);
  for (int i = 0; i < 4; ++i) {
    const absl::Status status = children.Wait(i);
    EXPECT_TRUE(status.ok()) << i << ": " << status;
  }
  const std::string apart = absl::StrCat(spec.checkpoint.dir, "/step-00000012");
  spec.checkpoint.dir = FreshFolder("together");
  const Reports together = ReportsOf(spec);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_TRUE(FileBytes(absl::StrCat(apart, "/", file)) ==
                FileBytes(absl::StrCat(together.checkpoints.back(), "/", file)))
        << file;
  }
}

TEST(ProcessJobTest, SkipConnectionsCrossTwoProcesses) {
  JobSpec spec = TinyCnnJob(1, /*steps=*/4);
  spec.model = ImageUNet();
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.cuts = {7};
  spec.plan.micro_batch_size = 8;
  spec.checkpoint.dir = FreshFolder("apart");
  ClusterRun run;
  run.ranks = {1, 1};
  ChildProcesses children(spec, run);
  for (int i : {0, 1}) {
    const absl::Status status = children.Wait(i);
    EXPECT_TRUE(status.ok()) << i << ": " << status;
  }
  const std::string apart = absl::StrCat(spec.checkpoint.dir, "/step-00000004");
  spec.checkpoint.dir = FreshFolder("together");
  const Reports together = ReportsOf(spec);
  for (const char* shard : {"model-00001-of-00002", "model-00002-of-00002"}) {
    EXPECT_TRUE(FileBytes(absl::StrCat(apart, "/", shard, ".safetensors")) ==
                FileBytes(absl::StrCat(together.checkpoints.back(), "/", shard,
                                       ".safetensors")))
        << shard;
  }
  spec.plan.mesh = pipeline::Mesh();
  spec.plan.cuts.clear();
  spec.checkpoint.dir.clear();
  EXPECT_EQ(ReportsOf(spec).losses(), together.losses());
}

}  // namespace
}  // namespace troupe::actors
