// Buffers in a job: every rank has them, a checkpoint saves those of the first
// replica, and a resumed job restores them. Evaluations use the same ones, so
// that a resumed job, and an evaluation of a checkpoint, repeat their results.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/job.h"
#include "base/files/file_system.h"
#include "data/subset.h"
#include "gtest/gtest.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/add.h"
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

// --- Buffers that differ between replicas ---

// A module whose forward reads, also in training, what its replica has seen
// before: another buffer gives other gradients.
class Drift : public nn::Module {
 public:
  Drift() : drift_(DeclareBuffer("drift", {8}, 0)) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    const nn::Tensor drift = ctx.Use(drift_);
    if (!ctx.ok() || x.is_meta()) return x;
    nn::Tensor now = nn::Tensor::Empty({8}, nn::DType::kF32, memory_);
    for (int i = 0; i < 8; ++i) now.data<float>()[i] = drift.data<float>()[i];
    if (ctx.updates_buffers()) {
      for (int i = 0; i < 8; ++i) {
        drift_.value.data<float>()[i] =
            0.5f * now.data<float>()[i] + 0.1f * x.data<float>()[i];
      }
    }
    return nn::ops::Add(ctx, x, now);
  }

 private:
  nn::CachingAllocator memory_;
  nn::Buffer& drift_;
};

std::unique_ptr<nn::Module> MakeNormed() {
  auto model = std::make_unique<nn::Sequential>();
  model->Append<nn::Flatten>();
  model->Append<nn::Linear>(784, 8);
  model->Append<nn::BatchNorm1d>(8);
  model->Append<nn::ReLU>();
  model->Append<nn::Linear>(8, 8);
  model->Append<nn::BatchNorm1d>(8);
  model->Append<nn::Linear>(8, 10);
  return model;
}

std::unique_ptr<nn::Module> MakeDrifting() {
  auto model = std::make_unique<nn::Sequential>();
  model->Append<nn::Flatten>();
  model->Append<nn::Linear>(784, 8);
  model->Append<Drift>();
  model->Append<nn::ReLU>();
  model->Append<nn::Linear>(8, 10);
  return model;
}

JobSpec NormedJob(const pipeline::Mesh& mesh, std::int64_t steps) {
  JobSpec spec = TinyCnnJob(mesh.dp(), steps);
  spec.model = MakeNormed;
  spec.plan.mesh = mesh;
  if (mesh.pp() == 2) spec.plan.cuts = {4};
  spec.plan.micro_batch_size = 4;
  return spec;
}

// Returns the evaluations after step `after`, to the bit.
std::string EvaluationsOf(const Reports& reports, std::int64_t after) {
  std::vector<std::string> lines;
  for (const EvaluationReport& report : reports.evaluations) {
    if (report.step <= after) continue;
    lines.push_back(absl::StrCat(
        report.step, ": ", absl::bit_cast<std::uint64_t>(report.loss), " ",
        absl::bit_cast<std::uint64_t>(report.accuracy)));
  }
  return absl::StrJoin(lines, "\n");
}

// Trains the job in one run and in two, and compares the steps and evaluations
// after the stop, and all tensors at the end.
void ResumesToTheSameBits(JobSpec spec, std::int64_t stop) {
  const std::string name =
      testing::UnitTest::GetInstance()->current_test_info()->name();
  spec.eval_every = 1;
  spec.checkpoint.every = stop;
  spec.checkpoint.dir = FreshFolder(name + "_straight");
  const Reports straight = ReportsOf(spec);
  const std::string straight_end = straight.checkpoints.back();
  spec.checkpoint.dir = FreshFolder(name + "_resumed");
  spec.checkpoint.resume = true;
  const std::int64_t steps = std::exchange(spec.steps, stop);
  ReportsOf(spec);
  spec.steps = steps;
  const Reports resumed = ReportsOf(spec);
  ASSERT_EQ(resumed.info.first_step, stop);
  EXPECT_EQ(EvaluationsOf(resumed, stop), EvaluationsOf(straight, stop));
  const std::vector<double> losses = straight.losses();
  EXPECT_EQ(resumed.losses(),
            std::vector<double>(losses.begin() + stop, losses.end()));
  for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
    EXPECT_EQ(FileBytes(resumed.checkpoints.back() + file),
              FileBytes(straight_end + file))
        << file;
  }
}

TEST(SharedBuffersTest, ResumedReplicasWithBatchNorms) {
  ResumesToTheSameBits(NormedJob(pipeline::Mesh(2), 7), /*stop=*/3);
}

TEST(SharedBuffersTest, ResumedReplicasWhoseTrainingReadsBuffers) {
  JobSpec spec = NormedJob(pipeline::Mesh(4), 6);
  spec.model = MakeDrifting;
  ResumesToTheSameBits(spec, /*stop=*/2);
}

TEST(SharedBuffersTest, ResumedReplicasThatDoNotEvaluate) {
  JobSpec spec = NormedJob(pipeline::Mesh(2), 6);
  spec.model = MakeDrifting;
  spec.test = nullptr;
  ResumesToTheSameBits(spec, /*stop=*/4);
}

TEST(SharedBuffersTest, ResumedReplicasWhoseStepsOverlap) {
  JobSpec spec = NormedJob(pipeline::Mesh(2), 6);
  spec.model = MakeDrifting;
  spec.plan.cross_step = true;
  spec.plan.inline_bytes = 0;
  ResumesToTheSameBits(spec, /*stop=*/4);
}

// Losses are equal but for roundings: a matrix product's depend on its rows.
TEST(SharedBuffersTest, AnEvaluationIsThatOfItsCheckpointOnAnyMesh) {
  for (const auto& [dp, pp] :
       {std::pair(2, 1), std::pair(1, 2), std::pair(2, 2), std::pair(4, 1)}) {
    const std::string name = absl::StrCat("dp", dp, "pp", pp);
    SCOPED_TRACE(name);
    JobSpec spec = NormedJob(pipeline::Mesh(dp, pp), 5);
    spec.checkpoint.dir = FreshFolder(name);
    const Reports trained = ReportsOf(spec);
    ASSERT_EQ(trained.evaluations.size(), 1u);
    JobSpec evaluates = NormedJob(pipeline::Mesh(), 5);
    evaluates.checkpoint.from = trained.checkpoints.back();
    const Reports evaluated = ReportsOf(evaluates);
    ASSERT_EQ(evaluated.evaluations.size(), 1u);
    EXPECT_NEAR(evaluated.evaluations[0].loss, trained.evaluations[0].loss,
                1e-7);
    EXPECT_EQ(evaluated.evaluations[0].accuracy,
              trained.evaluations[0].accuracy);
  }
}

// A replica without test samples takes part, too.
TEST(SharedBuffersTest, AReplicaWithoutTestSamplesTakesPart) {
  JobSpec spec = NormedJob(pipeline::Mesh(2), 4);
  spec.test = *data::MakeSubset(spec.test, 0, 1);
  spec.checkpoint.dir = FreshFolder("one_sample");
  const Reports trained = ReportsOf(spec);
  JobSpec evaluates = NormedJob(pipeline::Mesh(), 4);
  evaluates.test = spec.test;
  evaluates.checkpoint.from = trained.checkpoints.back();
  EXPECT_NEAR(ReportsOf(evaluates).evaluations[0].loss,
              trained.evaluations[0].loss, 1e-12);
}

}  // namespace
}  // namespace troupe::actors
