// Parameters that no forward uses are saved and restored like all others, as in
// PyTorch, and never trained.

#include <memory>
#include <string>
#include <vector>

#include "actors/checkpoint/checkpoint.h"
#include "actors/job.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

enum class Uses { kNever, kInEvaluation, kInTraining };

// Returns its input. Declares a parameter of f32, and one of bf16, which no
// other parameter of the model has.
class Spare : public nn::Module {
 public:
  explicit Spare(Uses uses)
      : uses_(uses),
        spare_(Declare("spare", {3}, nn::Initializer::Uniform(1))) {
    Declare("half", {2}, nn::Initializer::Constant(0.5), nn::DType::kBF16);
  }
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    const bool now = ctx.training() ? uses_ == Uses::kInTraining
                                    : uses_ == Uses::kInEvaluation;
    if (now && !ctx.shape_only()) ctx.Use(spare_);
    return x;
  }

 private:
  const Uses uses_;
  nn::Parameter& spare_;
};

JobSpec SpareJob(Uses uses, std::int64_t steps, const std::string& dir) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, steps);
  spec.model = [uses] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(784, 10);
    model->Append<Spare>(uses);
    return model;
  };
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.02;
    sgd.momentum = 0.9;
    sgd.weight_decay = 0.1;  // would shrink a parameter that is updated
    return std::make_unique<nn::Sgd>(sgd);
  };
  spec.checkpoint.dir = dir;
  spec.checkpoint.resume = true;
  return spec;
}

class UnusedParametersJobTest : public testing::Test {
 protected:
  // Returns "2.spare" of the newest checkpoint in `dir`.
  std::vector<float> SavedSpare(const std::string& dir) {
    const absl::StatusOr<Checkpoint> saved =
        Checkpoint::Open(files_, *FindLatestCheckpoint(files_, dir));
    EXPECT_TRUE(saved.ok()) << saved.status();
    EXPECT_EQ(
        saved->ModelNames(),
        (std::vector<std::string>{"1.bias", "1.weight", "2.half", "2.spare"}));
    const nn::Tensor spare = nn::Tensor::Zeros({3}, nn::DType::kF32, memory_);
    const absl::Status status = saved->ReadModel("2.spare", spare);
    EXPECT_TRUE(status.ok()) << status;
    return {spare.data<float>(), spare.data<float>() + 3};
  }

  base::PosixFileSystem files_;
  nn::CachingAllocator memory_;
};

TEST_F(UnusedParametersJobTest, AreSavedAsTheyWereMade) {
  const std::string dir = FreshFolder("spare");
  Reports reports;
  ASSERT_TRUE(RunJob(SpareJob(Uses::kNever, /*steps=*/1, dir), &reports).ok());
  EXPECT_EQ(reports.info.plan.stages[0].frozen, (std::vector<int>{2, 3}));
  const std::vector<float> made = SavedSpare(dir);
  EXPECT_NE(made[0], 0.0f);
  // The last stage of this pipeline trains nothing.
  JobSpec cut = SpareJob(Uses::kNever, /*steps=*/4, dir);
  cut.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  cut.plan.cuts = {2};
  const absl::StatusOr<JobResult> result = RunJob(cut);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(SavedSpare(dir), made);
}

TEST_F(UnusedParametersJobTest, MayBeUsedInEvaluation) {
  const absl::StatusOr<JobResult> result =
      RunJob(SpareJob(Uses::kInEvaluation, /*steps=*/1, ""));
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST_F(UnusedParametersJobTest, AreRefusedWhereTheyWouldBeTrained) {
  EXPECT_EQ(RunJob(SpareJob(Uses::kInTraining, /*steps=*/1, ""))
                .status()
                .message()
                .substr(6),  // whichever rank was first
            ", compute: step 1, micro-batch 0: in module 2: parameter 2.spare "
            "is used, but the shape-only forward did not use it: use it there "
            "too, or freeze it (requires_grad = false)");
}

}  // namespace
}  // namespace troupe::actors
