// Batches of recorded steps on a device whose queues run in any order that
// events permit.

#include "actors/engine/recording/graph_inputs.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/base/seeds.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::actors {
namespace {

using nn::DType;
using nn::Tensor;

constexpr int kGraphSteps = 5, kMicroBatches = 2;

struct Case {
  std::string name;
  std::int64_t features;  // number of features of each of 8 samples
  DType dtype;
};

class GraphInputsTest : public testing::TestWithParam<Case> {
 protected:
  // Returns a number that bf16 can represent, different in each step and
  // micro-batch.
  static double InputOf(std::int64_t step, std::int64_t m) {
    return static_cast<double>(16 * step + m);
  }

  Tensor Filled(const nn::Shape& shape, DType dtype, double number) {
    return nn::MakeTensor(
        shape, dtype,
        std::vector<double>(static_cast<std::size_t>(shape.numel()), number),
        nn::HostAllocator(*kernels_));
  }

  StepBatches BatchesOf(std::int64_t step) {
    StepBatches batches(kMicroBatches);
    for (std::int64_t m = 0; m < kMicroBatches; ++m) {
      data::Batch& batch = batches[static_cast<std::size_t>(m)];
      batch.inputs =
          Filled({8, GetParam().features}, DType::kF32, InputOf(step, m));
      batch.targets = Filled({8}, DType::kI64, InputOf(step, m) + 1);
      batch.position = 100 * step + m;
    }
    return batches;
  }

  // Copies to the host, in the order of the compute queue, what a graph would
  // read.
  Tensor Seen(const Tensor& here) {
    absl::StatusOr<Tensor> read =
        nn::CopyToHost(*kernels_, nn::Queue::kCompute, here);
    EXPECT_TRUE(read.ok()) << read.status();
    return *std::move(read);
  }

  std::unique_ptr<nn::Kernels> kernels_;
};

TEST_P(GraphInputsTest, EachStepFindsItsOwnInTheSamePlace) {
  for (std::uint64_t seed : Seeds(200)) {
    SCOPED_TRACE(ReplayCommand(seed));
    kernels_ = nn::CreateQueuedKernels(
        nn::CreateReferenceKernels(),
        std::make_shared<nn::GuardedMemory>(std::size_t{4} << 20), seed);
    GraphInputs inputs(*kernels_, GetParam().dtype, BatchesOf(0));
    std::vector<std::vector<Tensor>> seen;
    const void* place = nullptr;
    for (std::int64_t step = 0; step < kGraphSteps; ++step) {
      const absl::StatusOr<StepBatches> placed =
          inputs.Place(step, BatchesOf(step));
      ASSERT_TRUE(placed.ok()) << placed.status();
      seen.emplace_back();
      for (const data::Batch& batch : *placed) {
        EXPECT_EQ(batch.inputs.dtype(), GetParam().dtype);
        seen.back().push_back(Seen(batch.inputs));
        seen.back().push_back(Seen(batch.targets));
      }
      seen.back().push_back(Seen(inputs.draws()));
      const void* const here = (*placed)[1].inputs.device_data();
      EXPECT_TRUE(place == nullptr || place == here);
      place = here;
    }
    const base::Event end = nn::Record(*kernels_, nn::Queue::kCompute);
    ASSERT_TRUE(nn::Synchronize(*kernels_, end).ok());
    for (std::int64_t step = 0; step < kGraphSteps; ++step) {
      const std::vector<Tensor>& of_step = seen[static_cast<std::size_t>(step)];
      for (std::int64_t m = 0; m < kMicroBatches; ++m) {
        const auto i = static_cast<std::size_t>(2 * m);
        for (double value : nn::ValuesOf(of_step[i])) {
          ASSERT_EQ(value, InputOf(step, m)) << "step " << step;
        }
        for (double value : nn::ValuesOf(of_step[i + 1])) {
          ASSERT_EQ(value, InputOf(step, m) + 1) << "step " << step;
        }
      }
      EXPECT_EQ(
          nn::ValuesOf(of_step.back()),
          (std::vector<double>{static_cast<double>(step), 100.0 * step,
                               static_cast<double>(step), 100.0 * step + 1}));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Batches, GraphInputsTest,
    testing::Values(Case{"small", 10, DType::kF32},
                    Case{"small_and_converted", 10, DType::kBF16},
                    Case{"large", 2000, DType::kF32},
                    Case{"large_and_converted", 2000, DType::kBF16}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::actors
