#include "nn/kernels/queued/queued_device.h"

#include <cmath>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "base/usage_error.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/queued/queued_kernels.h"

namespace troupe::nn {
namespace {

struct Made {
  explicit Made(std::uint64_t seed)
      : memory(std::make_shared<GuardedMemory>(std::size_t{1} << 20)),
        kernels(CreateQueuedKernels(CreateCpuKernels({}), memory, seed)) {}
  std::shared_ptr<GuardedMemory> memory;
  std::unique_ptr<Kernels> kernels;
  CachingAllocator host;
};

// Returns the order in which a seed runs "a" "b" in one queue and "c" "d" in
// another.
std::string OrderOf(std::uint64_t seed, bool c_after_a) {
  auto device = QueuedDevice::Create(
      std::make_shared<GuardedMemory>(std::size_t{1} << 12), seed);
  std::string order;
  const auto note = [&order](char what) {
    return [&order, what] {
      order += what;
      return absl::OkStatus();
    };
  };
  device->Enqueue(Queue::kCompute, note('a'));
  const base::Event after_a = device->Record(Queue::kCompute);
  device->Enqueue(Queue::kCompute, note('b'));
  if (c_after_a) device->Wait(Queue::kCopy, after_a);
  device->Enqueue(Queue::kCopy, note('c'));
  device->Enqueue(Queue::kCopy, note('d'));
  EXPECT_EQ(order, "") << "nothing runs before somebody drives";
  while (device->Progress()) {
  }
  return order;
}

TEST(QueuedDevice, SeedsReachEveryOrderThatEventsPermit) {
  std::set<std::string> free, ordered;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    free.insert(OrderOf(seed, /*c_after_a=*/false));
    ordered.insert(OrderOf(seed, /*c_after_a=*/true));
    EXPECT_EQ(OrderOf(seed, true), OrderOf(seed, true));
  }
  EXPECT_EQ(free, (std::set<std::string>{"abcd", "acbd", "acdb", "cabd", "cadb",
                                         "cdab"}));
  EXPECT_EQ(ordered, (std::set<std::string>{"abcd", "acbd", "acdb"}));
}

TEST(QueuedDevice, CopiesComputesAndCopiesBack) {
  Made made(1);
  const Tensor from = Tensor::Of<float>({3}, {1, -2, 3}, made.host);
  const Tensor to = Tensor::Zeros({3}, DType::kF32, made.host);
  Tensor x = *Tensor::Create({3}, DType::kF32, made.kernels->allocator());
  Tensor y = *Tensor::Create({3}, DType::kF32, made.kernels->allocator());
  CopyBytes(*made.kernels, Queue::kCompute, from, x);
  ASSERT_TRUE(made.kernels->ReluForward(x, y).ok());
  CopyBytes(*made.kernels, Queue::kCompute, y, to);
  const base::Event done = Record(*made.kernels, Queue::kCompute);
  EXPECT_FALSE(done.ready());
  EXPECT_EQ(to.data<float>()[0], 0) << "not yet";
  EXPECT_TRUE(Synchronize(*made.kernels, done).ok());
  EXPECT_TRUE(BitEqual(to, Tensor::Of<float>({3}, {1, 0, 3}, made.host)));
}

// The copy queue waits for earlier users of the memory, and compute for the
// copy.
TEST(QueuedDevice, ACopyToTheDeviceIsThereForKernels) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (Queue queue : {Queue::kCopy, Queue::kCompute}) {
      Made made(seed);
      Tensor before =
          *Tensor::Create({3}, DType::kF32, made.kernels->allocator());
      ASSERT_TRUE(made.kernels->Fill(7.0, before).ok());
      before = Tensor();  // its memory is free, its work is still queued
      const Tensor from = Tensor::Of<float>({3}, {1, -2, 3}, made.host);
      const absl::StatusOr<Tensor> x = CopyToDevice(*made.kernels, queue, from);
      ASSERT_TRUE(x.ok()) << x.status();
      Tensor y = *Tensor::Create({3}, DType::kF32, made.kernels->allocator());
      ASSERT_TRUE(made.kernels->ReluForward(*x, y).ok());
      const Tensor to = *CopyToHost(*made.kernels, Queue::kCompute, y);
      ASSERT_TRUE(
          Synchronize(*made.kernels, Record(*made.kernels, Queue::kCompute))
              .ok());
      EXPECT_TRUE(BitEqual(to, Tensor::Of<float>({3}, {1, 0, 3}, made.host)))
          << seed;
    }
  }
}

TEST(QueuedDevice, FillsWhatIsFreedWithNaNs) {
  Made made(2);
  Tensor x = *Tensor::Create({4}, DType::kF32, made.kernels->allocator());
  ASSERT_TRUE(made.kernels->Fill(1.0, x).ok());
  x = Tensor();
  const Tensor again =
      *Tensor::Create({4}, DType::kF32, made.kernels->allocator());
  const Tensor seen = Tensor::Zeros({4}, DType::kF32, made.host);
  CopyBytes(*made.kernels, Queue::kCompute, again, seen);
  EXPECT_TRUE(
      Synchronize(*made.kernels, Record(*made.kernels, Queue::kCompute)).ok());
  for (float value : seen.span<float>()) EXPECT_TRUE(std::isnan(value));
}

TEST(QueuedDevice, AScopeHasItsQueueAndItsMemory) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Made made(seed);
    // For half of the seeds, the compute queue does not run.
    if (seed % 2 == 0) {
      Wait(*made.kernels, Queue::kCompute, base::Event::Make());
    }
    const Tensor seen = Tensor::Zeros({4}, DType::kF32, made.host);
    {
      const QueueScope scope(*made.kernels, CommQueue(1));
      Tensor x = *Tensor::Create({4}, DType::kF32, made.kernels->allocator());
      ASSERT_TRUE(made.kernels->Fill(1.0, x).ok());
      CopyBytes(*made.kernels, CommQueue(1), x, seen);
    }
    // y would share the memory of x, if both were in the order of one queue.
    Tensor y = *Tensor::Create({4}, DType::kF32, made.kernels->allocator());
    ASSERT_TRUE(made.kernels->Fill(2.0, y).ok());
    const base::Event done = Record(*made.kernels, CommQueue(1));
    ASSERT_TRUE(Synchronize(*made.kernels, done).ok());
    for (float value : seen.span<float>()) EXPECT_EQ(value, 1) << seed;
  }
}

TEST(QueuedDevice, AnErrorOfAnOpComesWithLaterEvents) {
  Made made(3);
  Tensor logits =
      *Tensor::Create({1, 2}, DType::kF32, made.kernels->allocator());
  Tensor labels = *Tensor::Create({1}, DType::kI64, made.kernels->allocator());
  Tensor stats = *Tensor::Create({3}, DType::kF64, made.kernels->allocator());
  Tensor none;
  ASSERT_TRUE(made.kernels->Fill(0.0, logits).ok());
  const Tensor wrong = Tensor::Of<std::int64_t>({1}, {9}, made.host);
  CopyBytes(*made.kernels, Queue::kCompute, wrong, labels);
  EXPECT_TRUE(
      made.kernels->SoftmaxCrossEntropy(logits, labels, -100, stats, none)
          .ok());
  const base::Event event = Record(*made.kernels, Queue::kCompute);
  EXPECT_EQ(Synchronize(*made.kernels, event).code(),
            absl::StatusCode::kOutOfRange);
}

TEST(QueuedDeviceDeathTest, TheHostIsCaughtByNameOrBySignal) {
  Made made(4);
  const Tensor x = *Tensor::Create({2}, DType::kF32, made.kernels->allocator());
  EXPECT_THROW(x.data<float>(), base::UsageError);
  auto* const address = static_cast<volatile float*>(x.device_data());
  EXPECT_DEATH(address[0] = 1, "");
}

}  // namespace
}  // namespace troupe::nn
