// Parts of a model that are trained in sequence have the same losses, to the
// bit, as a job with the same stages; also on an asynchronous device.

#include "actors/dataflow/model_part.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/job.h"
#include "data/batch_source.h"
#include "data/synthetic/synthetic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "pipeline/partition.h"

namespace troupe::actors {
namespace {

constexpr int kSteps = 4, kMicroBatches = 3, kBatch = 24;

std::unique_ptr<nn::Module> MakeModel() {
  return nn::MakeMlp({10, 16, 16, 10}, {});
}
std::unique_ptr<nn::Optimizer> MakeOptimizer() {
  return std::make_unique<nn::Adam>(nn::AdamOptions());
}

// Returns the options for stage 0 or 1 of the model, which is cut before child
// 3.
ModelPartOptions PartOptions(int stage) {
  ModelPartOptions options;
  options.model = [stage] {
    const std::vector<std::string> begins = {"3"};
    return pipeline::BuildStage(MakeModel, begins, stage);
  };
  options.optimizer = MakeOptimizer;
  if (stage == 1) options.loss = nn::ops::CrossEntropyLoss();
  options.seed = 5;
  return options;
}

// Trains two parts, with all forward passes of a step before its backward
// passes. Returns the loss of each step.
std::vector<double> TrainParts(const ModelPartOptions& first_options,
                               const ModelPartOptions& second_options) {
  auto first = ModelPart::Create(first_options).value();
  auto second = ModelPart::Create(second_options).value();
  nn::CachingAllocator memory;
  data::SamplerOptions sampler;
  sampler.global_batch_size = kBatch;
  sampler.seed = 5;
  data::BatchSource source =
      data::BatchSource::Create(
          data::MakeSyntheticDataset({}, "train").value(), sampler,
          {/*rank=*/0, /*world=*/1, kBatch / kMicroBatches}, memory)
          .value();
  std::vector<double> losses;
  std::vector<data::Batch> batches;
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_TRUE(source.Next(batches).ok());
    double loss = 0;
    std::vector<nn::Tensor> gradients;
    for (const data::Batch& batch : batches) {
      const nn::Tensor y = first->Forward(batch.inputs).value();
      const nn::Tensor stats = second->Loss(y, batch.targets).value();
      loss += stats.data<double>()[nn::ops::kLossSum];
      gradients.push_back(second->Backward().value());
    }
    EXPECT_EQ(first->under_way(), kMicroBatches);
    for (const nn::Tensor& gradient : gradients) {
      EXPECT_TRUE(first->Backward(gradient).ok());
    }
    EXPECT_TRUE(second->Update(kBatch).ok());
    EXPECT_TRUE(first->Update(kBatch).ok());
    losses.push_back(loss / kBatch);
  }
  EXPECT_EQ(first->updates(), kSteps);
  return losses;
}

class KeepLosses : public JobObserver {
 public:
  void OnSteps(absl::Span<const StepReport> steps) override {
    for (const StepReport& step : steps) losses.push_back(step.loss);
  }
  std::vector<double> losses;
};

TEST(ModelPart, TrainsAsTheStagesOfAJobDo) {
  JobSpec spec;
  spec.train = data::MakeSyntheticDataset({}, "train").value();
  spec.model = MakeModel;
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = MakeOptimizer;
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.cuts = {3};
  spec.plan.global_batch_size = kBatch;
  spec.plan.micro_batch_size = kBatch / kMicroBatches;
  spec.seed = 5;
  spec.steps = kSteps;
  KeepLosses observer;
  ASSERT_TRUE(RunJob(spec, &observer).ok());
  EXPECT_EQ(TrainParts(PartOptions(0), PartOptions(1)), observer.losses);
}

TEST(ModelPart, ADeviceThatWorksLaterIsWaitedFor) {
  const std::vector<double> expected =
      TrainParts(PartOptions(0), PartOptions(1));
  ModelPartOptions later = PartOptions(1);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    later.kernels = [seed] {
      return nn::CreateQueuedKernels(
          nn::CreateCpuKernels({}),
          std::make_shared<nn::GuardedMemory>(/*bytes_max=*/64 << 20), seed);
    };
    EXPECT_EQ(TrainParts(PartOptions(0), later), expected) << seed;
  }
}

// Returns the weights of a part after a step for each of `inputs`, filled with
// that value.
std::vector<float> WeightsAfter(const std::vector<float>& inputs) {
  ModelPartOptions options = PartOptions(1);
  options.optimizer = [] {
    nn::AdamOptions adam;
    adam.common.skip_nonfinite = true;
    return std::make_unique<nn::Adam>(adam);
  };
  auto part = ModelPart::Create(options).value();
  nn::CachingAllocator memory;
  const nn::Tensor targets = nn::Tensor::Zeros({2}, nn::DType::kI64, memory);
  for (const float input : inputs) {
    nn::Tensor x = nn::Tensor::Zeros({2, 16}, nn::DType::kF32, memory);
    for (float& each : x.span<float>()) each = input;
    EXPECT_TRUE(part->Loss(x, targets).ok());
    EXPECT_TRUE(part->Backward().ok());
    EXPECT_TRUE(part->Update(/*count=*/2).ok());
  }
  EXPECT_EQ(part->updates(), static_cast<std::int64_t>(inputs.size()));
  const nn::Tensor& weights = part->parameters()[0]->value;
  return {weights.span<float>().begin(), weights.span<float>().end()};
}

// As in a job: Adam's bias corrections count the updates that were made.
TEST(ModelPart, ASkippedStepIsNoUpdate) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(WeightsAfter({nan, 0.5f, nan, nan, 1, 2}),
            WeightsAfter({0.5f, 1, 2}));
}

TEST(ModelPart, MistakesAreNamed) {
  const auto message = [](const absl::Status& status) {
    return std::string(status.message());
  };
  EXPECT_THAT(message(ModelPart::Create({}).status()),
              testing::HasSubstr("ModelPartOptions.model is null; set it"));
  auto first = ModelPart::Create(PartOptions(0)).value();
  nn::CachingAllocator memory;
  const nn::Tensor wrong = nn::Tensor::Zeros({2, 7}, nn::DType::kF32, memory);
  EXPECT_THAT(message(first->Forward(wrong).status()),
              testing::HasSubstr("in module 1: linear takes"));
  EXPECT_THAT(message(first->Loss(wrong, wrong).status()),
              testing::HasSubstr("without a loss; set ModelPartOptions.loss"));
  EXPECT_EQ(first->Backward(wrong).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ModelPartOptions fixed = PartOptions(0);
  fixed.optimizer = nullptr;
  auto untrained = ModelPart::Create(fixed).value();
  const nn::Tensor x = nn::Tensor::Zeros({2, 10}, nn::DType::kF32, memory);
  EXPECT_TRUE(untrained->Forward(x).ok());
  EXPECT_EQ(untrained->under_way(), 0);
  EXPECT_EQ(untrained->Update(2).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace troupe::actors
