// Tests a job with dropout, in numbers for which every order of additions is
// exact: it has the same parameters however its global batch is divided among
// ranks, micro-batches and stages.

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/sim/simulation.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/dropout.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kDropoutWidth = 4, kDropoutBatch = 8, kDropoutSteps = 2;

// A linear layer whose weights are -1, 0 or 1.
class IntegerLinear : public nn::Linear {
 public:
  IntegerLinear()
      : nn::Linear(kDropoutWidth, kDropoutWidth,
                   {/*bias=*/true, nn::DType::kF64}) {
    for (nn::Parameter* parameter : Parameters()) {
      parameter->init = nn::Initializer::Integers(-1, 1);
    }
  }
};

data::DatasetPtr Integers() {
  nn::CachingAllocator memory;
  const nn::Shape shape = {kDropoutBatch * kDropoutSteps, kDropoutWidth};
  nn::Tensor inputs = nn::Tensor::Empty(shape, nn::DType::kF32, memory);
  nn::Tensor targets = nn::Tensor::Empty(shape, nn::DType::kF32, memory);
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    inputs.data<float>()[i] = static_cast<float>(i * i % 5) - 2;
    targets.data<float>()[i] = static_cast<float>(i % 3) - 1;
  }
  return *data::MakeInMemoryDataset(inputs, targets, /*num_classes=*/0);
}

// Returns the parameters of the whole model after each step, stage after stage.
std::vector<double> Train(int dp, const std::vector<pipeline::Cut>& cuts,
                          std::int64_t micro_batch_size) {
  JobSpec spec;
  spec.dtype = nn::DType::kF64;
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<IntegerLinear>();
    model->Append<nn::Dropout>(0.5);
    model->Append<IntegerLinear>();
    model->Append<nn::Dropout>(0.5);
    return model;
  };
  spec.loss = nn::ops::MeanSquaredError;
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.5;
    return std::make_unique<nn::Sgd>(sgd);
  };
  spec.kernels = [] { return nn::CreateReferenceKernels(); };
  spec.train = Integers();
  spec.shuffle = false;
  spec.seed = 3;
  spec.steps = kDropoutSteps;
  const int stages = static_cast<int>(cuts.size()) + 1;
  spec.plan.mesh = pipeline::Mesh(dp, stages);
  spec.plan.cuts = cuts;
  spec.plan.global_batch_size = kDropoutBatch;
  spec.plan.micro_batch_size = micro_batch_size;
  std::vector<std::vector<double>> all(stages * kDropoutSteps);
  SimulationOptions options;
  options.after_step = [&](int rank, std::int64_t step,
                           const nn::ParameterArena& arena) {
    const int stage = rank / dp;
    if (rank % dp != 0) return;
    std::vector<double>& values = all[step * stages + stage];
    // The loop is backward, since a bucket has the last layer first.
    for (auto slot = arena.slots().rbegin(); slot != arena.slots().rend();
         ++slot) {
      const auto span = slot->parameter->value.span<double>();
      values.insert(values.end(), span.begin(), span.end());
    }
  };
  Simulation simulation(spec, options);
  const absl::Status status = simulation.Run().status();
  EXPECT_TRUE(status.ok()) << status;
  std::vector<double> flat;
  for (const auto& values : all) {
    flat.insert(flat.end(), values.begin(), values.end());
  }
  return flat;
}

TEST(DropoutJobTest, TheCutOfTheBatchChangesNothing) {
  const std::vector<double> whole = Train(/*dp=*/1, {}, kDropoutBatch);
  ASSERT_EQ(whole.size(), kDropoutSteps * 2u *
                              (kDropoutWidth * kDropoutWidth + kDropoutWidth));
  // With micro-batches of 3 samples, the last one is smaller.
  for (const std::int64_t micro : {1, 2, 3, 4}) {
    EXPECT_EQ(Train(1, {}, micro), whole) << "micro-batches of " << micro;
    EXPECT_EQ(Train(2, {}, micro), whole) << "2 ranks, " << micro;
    EXPECT_EQ(Train(1, {2}, micro), whole) << "2 stages, " << micro;
  }
  EXPECT_EQ(Train(2, {1}, 2), whole) << "2 stages of 2 ranks";
  EXPECT_EQ(Train(2, {1}, 3), whole) << "2 stages of 2 ranks, 3 and 1";
  EXPECT_EQ(Train(1, {2}, 5), whole) << "2 stages, 5 and 3";
  EXPECT_EQ(Train(4, {}, 2), whole) << "4 ranks";
}

}  // namespace
}  // namespace troupe::actors
