// Buffers in a job: every rank has them, a checkpoint saves them, and a resumed
// job restores them.

#include <memory>

#include "actors/checkpoint/checkpoint.h"
#include "actors/job.h"
#include "base/file_system.h"
#include "gtest/gtest.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// A module that counts the micro-batches it was trained on.
class Counter : public nn::Module {
 public:
  Counter()
      : count_(DeclareBuffer("num_batches_tracked", {}, 0, nn::DType::kI64)),
        offset_(DeclareBuffer("offset", {3}, 0.25)) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    ctx.Use(count_);
    ctx.Use(offset_);
    if (ctx.updates_buffers()) ++*count_.value.data<std::int64_t>();
    return x;
  }

 private:
  nn::Buffer& count_;
  nn::Buffer& offset_;
};

JobSpec CountingJob(std::int64_t steps, const std::string& dir) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, steps);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(784, 10);
    model->Append<Counter>();
    return model;
  };
  spec.plan.micro_batch_size = 8;
  spec.eval_every = 2;
  spec.checkpoint.dir = dir;
  spec.checkpoint.resume = true;
  return spec;
}

TEST(BuffersJobTest, AreSavedAndGoOn) {
  const std::string dir = FreshFolder("counting");
  base::PosixFileSystem files;
  nn::CachingAllocator memory;
  for (const std::int64_t steps : {3, 8}) {
    const absl::StatusOr<JobResult> result =
        RunJob(CountingJob(steps, dir), nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    const Checkpoint saved =
        *Checkpoint::Open(files, *FindLatestCheckpoint(files, dir));
    const nn::Tensor count = nn::Tensor::Empty({}, nn::DType::kI64, memory);
    ASSERT_TRUE(saved.ReadModel("2.num_batches_tracked", count).ok());
    EXPECT_EQ(*count.data<std::int64_t>(), 2 * steps)
        << "two micro-batches a step, and none of an evaluation";
    const nn::Tensor offset = nn::Tensor::Empty({3}, nn::DType::kF32, memory);
    ASSERT_TRUE(saved.ReadModel("2.offset", offset).ok());
    EXPECT_EQ(offset.data<float>()[2], 0.25f);
    EXPECT_EQ(saved.OptimizerNames().size(), 2u) << "buffers have no momentum";
  }
}

TEST(BuffersJobTest, ACheckpointWithoutThemIsNamed) {
  const std::string dir = FreshFolder("without");
  JobSpec plain = CountingJob(2, dir);
  plain.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(784, 10);
    return model;
  };
  ASSERT_TRUE(RunJob(plain, nullptr).ok());
  const absl::Status status = RunJob(CountingJob(4, dir), nullptr).status();
  EXPECT_NE(status.message().find("2.num_batches_tracked"),
            absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace troupe::actors
