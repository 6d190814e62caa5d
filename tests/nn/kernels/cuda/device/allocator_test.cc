// Tests of the memory of a CUDA device: it takes none from the driver once all
// sizes have occurred, and reuses released memory in the order of the stream.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::nn::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Runs a step as the engine does: the copy queue copies a batch into memory
// that the compute queue may still use, the compute queue works on it, and the
// result is copied to the host after an event.
base::Event Step(CudaDevice& device, float number, Tensor* result) {
  const Tensor batch = Tensor::Empty({3}, DType::kF32, device.allocator());
  device.Wait(Queue::kCopy, device.Record(Queue::kCompute));
  device.CopyBytes(Queue::kCopy, HostNumbers({number, 1, 2}), batch);
  device.Wait(Queue::kCompute, device.Record(Queue::kCopy));
  Tensor x = Sum(device, Queue::kCompute, batch, batch);
  x = Sum(device, Queue::kCompute, x, batch);
  *result = Tensor::Empty({3}, DType::kF32, device.host_allocator());
  device.Wait(Queue::kCopy, device.Record(Queue::kCompute));
  device.CopyBytes(Queue::kCopy, x, *result);
  const base::Event copied = device.Record(Queue::kCopy);
  // x is released and may be the memory of the next batch, so the compute queue
  // waits for its last use.
  device.Wait(Queue::kCompute, copied);
  return copied;
}

TEST(CudaAllocatorTest, ReleasedMemoryIsUsedAgainInOrder) {
  for (std::uint64_t seed : Seeds(200)) {
    const EmulatedWorld world(seed);
    auto device = *CudaDevice::Open(0);
    std::vector<Tensor> results(6);
    base::Event last;
    for (int i = 0; i < 6; ++i) {
      last = Step(*device, static_cast<float>(i), &results[i]);
    }
    ASSERT_TRUE(Await(*device, last).ok());
    for (int i = 0; i < 6; ++i) {
      ASSERT_THAT(results[i].span<float>(), ElementsAre(3.0f * i, 3, 6))
          << ReplayCommand(seed);
    }
    EXPECT_LE(device->allocator().stats().system_allocations, 3);
  }
}

TEST(CudaAllocatorTest, AsksNothingOfTheDriverInSteadyState) {
  const EmulatedWorld world(7);
  auto device = *CudaDevice::Open(0);
  Tensor result;
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(Await(*device, Step(*device, 1, &result)).ok());
    }
  };
  steps(3);
  const std::uint64_t taken = emulated_cuda::Counts().system_allocations;
  const std::int64_t events = device->events().created();
  const std::uint64_t done = emulated_cuda::Counts().executed;
  steps(50);
  EXPECT_EQ(emulated_cuda::Counts().system_allocations, taken);
  EXPECT_EQ(device->events().created(), events);
  EXPECT_GT(emulated_cuda::Counts().executed, done + 50);
}

TEST(CudaAllocatorTest, GivesBackWhatIsCachedWhenMemoryHasRunOut) {
  for (std::uint64_t seed : Seeds(20)) {
    emulated_cuda::Options options = EmulatedWorld::OptionsOf(seed);
    options.device_bytes = std::size_t{1} << 20;
    const EmulatedWorld world(options);
    auto device = *CudaDevice::Open(0);
    constexpr std::int64_t kLarge = 150 << 10;  // elements: 600 of 1024 KiB
    {
      const Tensor large =
          Tensor::Empty({kLarge}, DType::kF32, device->allocator());
      const Tensor some = large.FlatView(0, {64});
      // The memory is in use when it is released.
      ASSERT_TRUE(
          device
              ->Reduce(Queue::kCompute, {ReduceOp::kSum, {some, some}, {some}})
              .ok());
    }
    const auto other =
        Tensor::Create({kLarge + (50 << 10)}, DType::kF32, device->allocator());
    ASSERT_TRUE(other.ok()) << other.status();
    const auto third =
        Tensor::Create({kLarge}, DType::kF32, device->allocator());
    EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(third.status().message()),
                HasSubstr("cuda:0 has no memory for 600 KiB"));
  }
}

TEST(CudaAllocatorTest, TensorsOutliveTheirDevice) {
  const EmulatedWorld world(9);
  auto device = *CudaDevice::Open(0);
  Tensor there = OnDevice(*device, Queue::kCompute, {1, 2});
  Tensor pinned = Tensor::Empty({2}, DType::kF32, device->host_allocator());
  device.reset();
  pinned.data<float>()[0] = 1;
}

TEST(CudaAllocatorTest, KnowsItsPinnedMemory) {
  const EmulatedWorld world(11);
  PinnedMemory memory(/*ordinal=*/0);
  char* const block = static_cast<char*>(memory.Allocate(128));
  char* const other = static_cast<char*>(memory.Allocate(64));
  EXPECT_TRUE(memory.Contains(block));
  EXPECT_TRUE(memory.Contains(block + 127));
  EXPECT_TRUE(memory.Contains(other));
  char mine = 0;
  EXPECT_FALSE(memory.Contains(&mine));
  memory.Free(block, 128);
  EXPECT_FALSE(memory.Contains(block + 127));
  memory.Free(other, 64);
}

}  // namespace
}  // namespace troupe::nn::cuda
