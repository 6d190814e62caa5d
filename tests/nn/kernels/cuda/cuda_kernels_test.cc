// Tests of the kernel set as a whole, on the emulation; ops_test.cc tests the
// results of each op.

#include "nn/kernels/cuda/cuda_kernels.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cuda/libraries/emulated_choice.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernel_choices.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::nn::cuda {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

Tensor There(Kernels& kernels, const std::vector<float>& values) {
  return *CopyToDevice(kernels, Queue::kCopy, HostNumbers(values));
}

std::vector<float> Back(Kernels& kernels, const Tensor& tensor) {
  const Tensor host = *CopyToHost(kernels, Queue::kCompute, tensor);
  const absl::Status status =
      Synchronize(kernels, Record(kernels, Queue::kCompute));
  EXPECT_TRUE(status.ok()) << status;
  const absl::Span<float> span = host.span<float>();
  return std::vector<float>(span.begin(), span.end());
}

// Returns relu(x w^T + b), w (2, 2): the library computes the product, kernels
// of our own the rest.
Tensor Layer(Kernels& kernels, const Tensor& x, const Tensor& w,
             const Tensor& b) {
  Tensor y = Tensor::Empty({1, 2}, DType::kF32, kernels.allocator());
  Tensor z = Tensor::Empty({1, 2}, DType::kF32, kernels.allocator());
  absl::Status status = kernels.LinearForward(x, w, b, y);
  EXPECT_TRUE(status.ok()) << status;
  status = kernels.ReluForward(y, z);
  EXPECT_TRUE(status.ok()) << status;
  return z;
}

TEST(CudaKernelsTest, SaysWhatItIs) {
  const EmulatedWorld world(1);
  EXPECT_EQ(*CountGpus(), 2);
  const auto kernels = *OpenCudaKernels(1);
  EXPECT_EQ(kernels->device().ToString(), "cuda:1");
  EXPECT_THAT(kernels->Describe(), StartsWith("cuda:1, "));
}

TEST(CudaKernelsTest, ComputesInTheOrderOfItsQueues) {
  for (std::uint64_t seed : Seeds(50)) {
    const EmulatedWorld world(seed);
    const auto kernels = *OpenCudaKernels(0);
    const Tensor x = There(*kernels, {1, -2}).View({1, 2});
    const Tensor w = There(*kernels, {1, 2, 3, 1}).View({2, 2});
    const Tensor b = There(*kernels, {0.5f, 0.25f});
    EXPECT_THAT(Back(*kernels, Layer(*kernels, x, w, b)), ElementsAre(0, 1.25f))
        << ReplayCommand(seed);
  }
}

// Returns a product of numbers whose sum differs in the last bits between
// orders.
std::vector<float> Products(Kernels& kernels) {
  std::vector<float> numbers(64);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = 1.0f / static_cast<float>(i + 7);
  }
  const Tensor x = There(kernels, numbers).View({1, 64});
  const Tensor w = There(kernels, numbers).View({1, 64});
  const Tensor b = There(kernels, {0.1f});
  Tensor y = Tensor::Empty({1, 1}, DType::kF32, kernels.allocator());
  const absl::Status status = kernels.LinearForward(x, w, b, y);
  EXPECT_TRUE(status.ok()) << status;
  return Back(kernels, y);
}

// The fastest algorithm differs from run to run, but the choice is made once.
TEST(CudaKernelsTest, TakesTheAlgorithmThatWasChosen) {
  const EmulatedWorld world(1);
  std::vector<std::vector<float>> by_algorithm;
  ChoicesByDevice chosen;
  for (int fastest = 0; fastest < kEmulatedAlgorithms; ++fastest) {
    SetEmulatedFastest(fastest);
    KernelOptions options;
    options.choices = std::make_shared<KernelChoices>();
    by_algorithm.push_back(Products(**OpenCudaKernels(0, options)));
    chosen = options.choices->InUse();
    // Another rank, for which another algorithm is faster.
    SetEmulatedFastest(0);
    EXPECT_EQ(Products(**OpenCudaKernels(1, options)), by_algorithm.back());
    EXPECT_EQ(options.choices->InUse(), chosen);
  }
  EXPECT_NE(by_algorithm[1], by_algorithm[2]);
  // Another run that adopts the recorded choices.
  KernelOptions later;
  later.choices = std::make_shared<KernelChoices>();
  later.choices->Adopt(chosen);
  EXPECT_EQ(Products(**OpenCudaKernels(0, later)), by_algorithm[2]);
  // A run without the record.
  EXPECT_EQ(Products(**OpenCudaKernels(0)), by_algorithm[0]);
  EXPECT_NE(by_algorithm[0], by_algorithm[2]);
}

// Returns the gradient of attention with 64 bf16 queries and keys.
std::vector<float> Attended(Kernels& kernels, const AttentionRule& rule) {
  constexpr std::int64_t kT = 64, kD = 8;
  const auto made = [&](std::int64_t heads) {
    return Tensor::Empty({1, kT, heads, kD}, DType::kBF16, kernels.allocator());
  };
  std::vector<float> numbers(kT * 3 * kD);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(i * 37 % 101) / 50.0f - 1;
  }
  Tensor qkv = made(3), dqkv = made(3), y = made(1), none;
  Tensor lse = Tensor::Empty({1, 1, kT}, DType::kF32, kernels.allocator());
  Tensor all = Tensor::Empty(qkv.shape(), DType::kF32, kernels.allocator());
  for (const absl::Status& status :
       {kernels.Copy(There(kernels, numbers).View(qkv.shape()), qkv),
        kernels.AttentionForward(rule, qkv, none, none, y, lse),
        kernels.AttentionBackward(rule, qkv, none, none, y, lse, y, dqkv, none,
                                  none),
        kernels.Copy(dqkv, all)}) {
    EXPECT_TRUE(status.ok()) << status;
  }
  return Back(kernels, all);
}

std::string ChoiceOf(const ChoicesByDevice& chosen, const std::string& key) {
  for (const auto& [device, choices] : chosen) {
    if (choices.count(key) > 0) return choices.at(key);
  }
  return "none";
}

// Kernels of our own compete with the library's, forward and backward
// separately.
TEST(CudaKernelsTest, TakesTheAttentionThatWasChosen) {
  const EmulatedWorld world(1);
  AttentionRule rule;
  rule.causal = true;
  rule.scale = 0.3;
  const std::string sizes = ":bf16:1.64.64:1.1.8:qkv+causal";
  std::vector<std::vector<float>> by_algorithm;
  for (const char* choice : {"own", "reference"}) {
    SetEmulatedFastest(static_cast<int>(by_algorithm.size()));
    KernelOptions options;
    options.choices = std::make_shared<KernelChoices>();
    by_algorithm.push_back(Attended(**OpenCudaKernels(0, options), rule));
    const ChoicesByDevice chosen = options.choices->InUse();
    EXPECT_EQ(ChoiceOf(chosen, "attention_forward" + sizes), choice);
    EXPECT_EQ(ChoiceOf(chosen, "attention_backward" + sizes), choice);
    // Another run with this record, in which the other algorithm is faster.
    SetEmulatedFastest(by_algorithm.size() == 1 ? 1 : 0);
    KernelOptions later;
    later.choices = std::make_shared<KernelChoices>();
    later.choices->Adopt(chosen);
    EXPECT_EQ(Attended(**OpenCudaKernels(0, later), rule), by_algorithm.back());
  }
  SetEmulatedFastest(0);
  ASSERT_EQ(by_algorithm[0].size(), by_algorithm[1].size());
  for (std::size_t i = 0; i < by_algorithm[0].size(); ++i) {
    EXPECT_NEAR(by_algorithm[0][i], by_algorithm[1][i], 0.02) << i;
  }
}

// The handles of the operands are destroyed before the held ops run.
TEST(CudaKernelsTest, HeldOpsKeepTheirOperands) {
  for (std::uint64_t seed : Seeds(50)) {
    const EmulatedWorld world(seed);
    const auto kernels = *OpenCudaKernels(0);
    const base::Event host = base::Event::Make();
    Tensor z;
    {
      const Tensor x = There(*kernels, {1, -2}).View({1, 2});
      const Tensor w = There(*kernels, {1, 2, 3, 1}).View({2, 2});
      const Tensor b = There(*kernels, {0.5f, 0.25f});
      Wait(*kernels, Queue::kCompute, host);
      z = Layer(*kernels, x, w, b);
    }
    Tensor other = Tensor::Empty({2}, DType::kF32, kernels->allocator());
    ASSERT_TRUE(kernels->Fill(7.0, other).ok());
    const Tensor copy = *CopyToHost(*kernels, Queue::kCompute, z);
    const base::Event done = Record(*kernels, Queue::kCompute);
    while (kernels->queues()->Progress()) {
    }
    EXPECT_FALSE(done.ready());
    host.Complete(absl::OkStatus());
    ASSERT_TRUE(Synchronize(*kernels, done).ok());
    EXPECT_THAT(copy.span<float>(), ElementsAre(0, 1.25f))
        << ReplayCommand(seed);
  }
}

std::vector<float> BackBy(Queue queue, Kernels& kernels, const Tensor& tensor) {
  const Tensor host = *CopyToHost(kernels, queue, tensor);
  const absl::Status status = Synchronize(kernels, Record(kernels, queue));
  EXPECT_TRUE(status.ok()) << status;
  const absl::Span<float> span = host.span<float>();
  return std::vector<float>(span.begin(), span.end());
}

// Computes several layers, each in memory that the one before released.
Tensor Layers(Kernels& kernels, const Tensor& w, const Tensor& b) {
  Tensor z = Tensor::Empty({1, 2}, DType::kF32, kernels.allocator());
  EXPECT_TRUE(kernels.Fill(1.0, z).ok());
  for (int i = 0; i < 3; ++i) z = Layer(kernels, z, w, b);
  return z;
}

TEST(CudaKernelsTest, AScopeSendsKernelsToItsQueue) {
  for (std::uint64_t seed : Seeds(50)) {
    const EmulatedWorld world(seed);
    const auto kernels = *OpenCudaKernels(0);
    const Tensor w = There(*kernels, {1, 2, 3, 1}).View({2, 2});
    const Tensor b = There(*kernels, {0.5f, 0.25f});
    const base::Event ready = Record(*kernels, Queue::kCompute);
    const base::Event host = base::Event::Make();
    Wait(*kernels, Queue::kCompute, host);
    const Tensor held = Layers(*kernels, w, b);
    for (Queue queue : {Queue::kComm, CommQueue(3)}) {
      Wait(*kernels, queue, ready);
      const QueueScope scope(*kernels, queue);
      const Tensor z = Layers(*kernels, w, b);
      // The compute queue is still held.
      EXPECT_THAT(BackBy(queue, *kernels, z), ElementsAre(43, 52.75f))
          << ReplayCommand(seed);
    }
    host.Complete(absl::OkStatus());
    EXPECT_THAT(Back(*kernels, held), ElementsAre(43, 52.75f))
        << ReplayCommand(seed);
  }
}

TEST(CudaKernelsTest, HeldOpsOfAScopeGoToItsQueue) {
  for (std::uint64_t seed : Seeds(50)) {
    const EmulatedWorld world(seed);
    const auto kernels = *OpenCudaKernels(0);
    const Tensor x = There(*kernels, {1, -2});
    Wait(*kernels, Queue::kComm, Record(*kernels, Queue::kCompute));
    const base::Event host = base::Event::Make();
    Wait(*kernels, Queue::kComm, host);
    Tensor y;
    {
      const QueueScope scope(*kernels, Queue::kComm);
      y = Tensor::Empty({2}, DType::kF32, kernels->allocator());
      ASSERT_TRUE(kernels->Add(x, x, y).ok());
    }
    Tensor z = Tensor::Empty({2}, DType::kF32, kernels->allocator());
    ASSERT_TRUE(kernels->Add(x, x, z).ok());
    EXPECT_THAT(Back(*kernels, z), ElementsAre(2, -4)) << "is not held";
    host.Complete(absl::OkStatus());
    EXPECT_THAT(BackBy(Queue::kComm, *kernels, y), ElementsAre(2, -4))
        << ReplayCommand(seed);
  }
}

void ExpectWrongRowIsTold(Queue queue, std::uint64_t seed) {
  const EmulatedWorld world(seed);
  const auto kernels = *OpenCudaKernels(0);
  const Tensor table = There(*kernels, {1, 2, 3, 4}).View({2, 2});
  CachingAllocator host;
  const Tensor rows = *CopyToDevice(*kernels, Queue::kCopy,
                                    Tensor::Of<std::int64_t>({1}, {5}, host));
  Wait(*kernels, queue, Record(*kernels, Queue::kCompute));
  const QueueScope scope(*kernels, queue);
  Tensor y = Tensor::Empty({1, 2}, DType::kF32, kernels->allocator());
  ASSERT_TRUE(kernels->EmbeddingForward(rows, table, y).ok());
  const absl::Status status = Synchronize(*kernels, Record(*kernels, queue));
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_EQ(status.message(),
            "Embedding: index 0 is 5, but the table has 2 rows");
}

TEST(CudaKernelsTest, WrongDataComesWithALaterEvent) {
  for (std::uint64_t seed : Seeds(20)) {
    ExpectWrongRowIsTold(Queue::kCompute, seed);
    ExpectWrongRowIsTold(CommQueue(1), seed);
  }
}

}  // namespace
}  // namespace troupe::nn::cuda
