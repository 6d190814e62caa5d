#include "actors/chunks/step/model_batches.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"

namespace troupe::actors {
namespace {

// Returns one batch of a float and a token, at place 7 of the data.
StepBatches OneBatch(nn::Allocator& allocator) {
  data::Batch batch;
  batch.position = 7;
  batch.inputs = nn::Tensor::Empty({1}, nn::DType::kF32, allocator);
  batch.inputs.data<float>()[0] = 1.5f;
  batch.targets = nn::Tensor::Empty({1}, nn::DType::kI64, allocator);
  batch.targets.data<std::int64_t>()[0] = 3;
  return {batch};
}

TEST(ModelBatchesTest, FloatsGetTheDTypeOfTheModel) {
  const std::unique_ptr<nn::Kernels> kernels = nn::CreateReferenceKernels();
  ModelBatches batches(*kernels, nn::DType::kF64);
  batches.Begin(OneBatch(kernels->allocator()));
  EXPECT_EQ(batches.size(), 1);
  EXPECT_EQ(batches.position(0), 7);
  const nn::Tensor inputs = *batches.Inputs(0);
  ASSERT_EQ(inputs.dtype(), nn::DType::kF64);
  EXPECT_EQ(inputs.data<double>()[0], 1.5);
  const nn::Tensor targets = *batches.Targets(0);
  ASSERT_EQ(targets.dtype(), nn::DType::kI64) << "tokens stay integers";
  EXPECT_EQ(targets.data<std::int64_t>()[0], 3);
}

TEST(ModelBatchesTest, ABatchOfThatDTypeIsNotCopied) {
  const std::unique_ptr<nn::Kernels> kernels = nn::CreateReferenceKernels();
  ModelBatches batches(*kernels, nn::DType::kF32);
  StepBatches loaded = OneBatch(kernels->allocator());
  const float* const data = loaded[0].inputs.data<float>();
  batches.Begin(std::move(loaded));
  EXPECT_EQ(batches.Inputs(0)->data<float>(), data);
}

}  // namespace
}  // namespace troupe::actors
