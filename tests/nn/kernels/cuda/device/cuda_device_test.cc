#include "nn/kernels/cuda/device/cuda_device.h"

#include <cstdint>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::nn::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<CudaDevice> Open(int ordinal = 0) {
  auto device = CudaDevice::Open(ordinal);
  EXPECT_TRUE(device.ok()) << device.status();
  return *std::move(device);
}

// Returns whether the queue takes work at once.
bool IsOpen(CudaDevice& device, Queue queue) {
  return device.TakesNow(queue, "nothing");
}

TEST(CudaDeviceTest, RefusesAGpuThatIsNotThere) {
  const EmulatedWorld world(1);
  const absl::Status status = CudaDevice::Open(2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "there is no cuda:2: this process sees 2 GPUs; set "
            "CUDA_VISIBLE_DEVICES to choose which it sees");
}

TEST(CudaDeviceTest, WorkOfOneQueueIsInOrder) {
  for (std::uint64_t seed : EverySeed(50)) {
    const EmulatedWorld world(seed);
    auto device = Open();
    Tensor x = OnDevice(*device, Queue::kCompute, {1, 2, 3});
    for (int i = 0; i < 4; ++i) x = Sum(*device, Queue::kCompute, x, x);
    EXPECT_THAT(Numbers(*device, x), ElementsAre(16, 32, 48)) << seed;
  }
}

TEST(CudaDeviceTest, CopiesPageableMemoryWithoutWaiting) {
  for (std::uint64_t seed : EverySeed(20)) {
    const EmulatedWorld world(seed);
    auto device = Open();
    Tensor from = HostNumbers({1, 2});
    const Tensor there =
        Tensor::Empty(from.shape(), from.dtype(), device->allocator());
    device->CopyBytes(Queue::kCopy, from, there);
    from.data<float>()[0] = 99;  // CopyBytes() has already read it
    const Tensor back = HostNumbers({0, 0});
    device->CopyBytes(Queue::kCopy, there, back);
    const base::Event copied = device->Record(Queue::kCopy);
    ASSERT_TRUE(Await(*device, copied).ok());
    EXPECT_THAT(back.span<float>(), ElementsAre(1, 2)) << seed;
  }
}

TEST(CudaDeviceTest, AQueueWaitsForAnotherWithoutTheHost) {
  for (std::uint64_t seed : EverySeed(100)) {
    const EmulatedWorld world(seed);
    auto device = Open();
    const Tensor x = OnDevice(*device, Queue::kCopy, {1, 2, 3});
    device->Wait(Queue::kCompute, device->Record(Queue::kCopy));
    EXPECT_TRUE(IsOpen(*device, Queue::kCompute));
    const Tensor y = Sum(*device, Queue::kCompute, x, x);
    EXPECT_THAT(Numbers(*device, y), ElementsAre(2, 4, 6)) << seed;
  }
}

TEST(CudaDeviceTest, DevicesWaitForEachOther) {
  for (std::uint64_t seed : EverySeed(100)) {
    const EmulatedWorld world(seed);
    auto first = Open(0), second = Open(seed % 2);
    const Tensor x = OnDevice(*first, Queue::kCompute, {1, 2, 3});
    const base::Event ready = first->Record(Queue::kCompute);
    second->Wait(Queue::kComm, ready);
    EXPECT_TRUE(IsOpen(*second, Queue::kComm));
    // The second device reads and writes the memory of the first.
    ASSERT_TRUE(
        second->Reduce(Queue::kComm, {ReduceOp::kSum, {x, x}, {x}}).ok());
    first->Wait(Queue::kCompute, second->Record(Queue::kComm));
    EXPECT_THAT(Numbers(*first, x), ElementsAre(2, 4, 6)) << seed;
    ASSERT_TRUE(Await(*second, second->Record(Queue::kComm)).ok());
  }
}

TEST(CudaDeviceTest, HoldsWhatWaitsForTheHost) {
  for (std::uint64_t seed : EverySeed(50)) {
    const EmulatedWorld world(seed);
    auto device = Open();
    int wakeups = 0;
    ASSERT_TRUE(device->SetWakeup([&] { ++wakeups; }, /*watch=*/false).ok());
    const Tensor x = OnDevice(*device, Queue::kCompute, {1, 2, 3});
    const base::Event host = base::Event::Make();
    device->Wait(Queue::kCompute, host);
    EXPECT_FALSE(IsOpen(*device, Queue::kCompute));
    bool ran = false;
    ASSERT_TRUE(device
                    ->Give(Queue::kCompute, "note",
                           [&] {
                             ran = true;
                             return absl::OkStatus();
                           })
                    .ok());
    const Tensor y = Sum(*device, Queue::kCompute, x, x);
    const base::Event summed = device->Record(Queue::kCompute);
    EXPECT_EQ(summed.origin(), nullptr);
    // Another queue that waits for the event is also held.
    device->Wait(Queue::kCopy, summed);
    const Tensor back =
        Tensor::Empty(y.shape(), y.dtype(), device->host_allocator());
    device->CopyBytes(Queue::kCopy, y, back);
    const base::Event copied = device->Record(Queue::kCopy);
    while (device->Progress()) {
    }
    EXPECT_FALSE(ran);
    EXPECT_FALSE(summed.ready());
    const int before = wakeups;
    host.Complete(absl::OkStatus());
    EXPECT_GT(wakeups, before);
    ASSERT_TRUE(Await(*device, copied).ok());
    EXPECT_TRUE(ran);
    EXPECT_TRUE(IsOpen(*device, Queue::kCompute));
    EXPECT_THAT(back.span<float>(), ElementsAre(2, 4, 6)) << seed;
  }
}

TEST(CudaDeviceTest, WhatAHostsEventFailsWithIsTheStatusOfLaterEvents) {
  const EmulatedWorld world(3);
  auto device = Open();
  const base::Event before = device->Record(Queue::kCompute);
  ASSERT_TRUE(Await(*device, before).ok());
  const base::Event host = base::Event::Make();
  device->Wait(Queue::kCompute, host);
  const base::Event after = device->Record(Queue::kCompute);
  host.Complete(absl::AbortedError("the group was aborted"));
  EXPECT_EQ(Await(*device, after).message(), "the group was aborted");
}

TEST(CudaDeviceTest, AnEventIsNotDoneBeforeItsWork) {
  int early = 0;
  for (std::uint64_t seed : EverySeed(50)) {
    const EmulatedWorld world(seed);
    auto device = Open();
    Tensor x = OnDevice(*device, Queue::kCompute, {1});
    const base::Event first = device->Record(Queue::kCompute);
    const Tensor pinned =
        Tensor::Empty(x.shape(), x.dtype(), device->host_allocator());
    for (int i = 0; i < 8; ++i) x = Sum(*device, Queue::kCompute, x, x);
    device->CopyBytes(Queue::kCompute, x, pinned);
    const base::Event last = device->Record(Queue::kCompute);
    bool first_was_alone = false;
    while (!last.ready()) {
      device->Progress();
      first_was_alone = first_was_alone || (first.ready() && !last.ready());
    }
    early += first_was_alone;
    EXPECT_THAT(pinned.span<float>(), ElementsAre(256));
  }
  EXPECT_GT(early, 0);
}

TEST(CudaDeviceTest, ABrokenDeviceSaysWhatWasInFlight) {
  EmulatedWorld world(5);
  world.ExpectBroken();
  auto device = Open();
  const Tensor x = OnDevice(*device, Queue::kCompute, {1, 2, 3});
  ASSERT_TRUE(Await(*device, device->Record(Queue::kCompute)).ok());
  const Tensor y = Sum(*device, Queue::kCompute, x, x);
  const base::Event done = device->Record(Queue::kCompute);
  emulated_cuda::BreakDevice(0, cudaErrorIllegalAddress);
  const absl::Status status = Await(*device, done);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuda:0 failed"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cudaErrorIllegalAddress"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("in flight: compute: Reduce"));
  // Later events and work have this status at once.
  const base::Event later = device->Record(Queue::kCopy);
  EXPECT_TRUE(later.ready());
  EXPECT_EQ(later.status(), status);
  EXPECT_EQ(device->Give(Queue::kComm, "x", [] { return absl::OkStatus(); }),
            status);
}

TEST(CudaDeviceTest, WrongDataIsTheStatusOfLaterEvents) {
  for (std::uint64_t seed : EverySeed(20)) {
    const EmulatedWorld world(seed);
    auto device = Open();
    ASSERT_TRUE(Await(*device, device->Record(Queue::kCompute)).ok());
    // Writes a note of wrong data as a kernel does.
    const Tensor note =
        Tensor::Borrow(device->data_error(Queue::kCompute), {sizeof(DataError)},
                       DType::kU8, Device{});
    const Tensor wrong =
        Tensor::Empty(note.shape(), note.dtype(), device->host_allocator());
    new (wrong.raw()) DataError{kEmbeddingRow, 3, 12, 10};
    device->CopyBytes(Queue::kCompute, wrong, note);
    const absl::Status status = Await(*device, device->Record(Queue::kCompute));
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_EQ(status.message(),
              "Embedding: index 3 is 12, but the table has 10 rows");
    EXPECT_EQ(Await(*device, device->Record(Queue::kCopy)), status);
  }
}

TEST(CudaDeviceTest, ClosingEndsWhatIsHeldAndWaitsForWhatRuns) {
  for (std::uint64_t seed : EverySeed(20)) {
    const EmulatedWorld world(seed);
    auto device = Open();
    const Tensor x = OnDevice(*device, Queue::kCompute, {1, 2, 3});
    const base::Event runs = device->Record(Queue::kCompute);
    device->Wait(Queue::kCompute, base::Event::Make());
    const base::Event held = device->Record(Queue::kCompute);
    device->Close();
    EXPECT_TRUE(runs.ready());
    EXPECT_TRUE(runs.status().ok()) << runs.status();
    EXPECT_EQ(held.status().code(), absl::StatusCode::kCancelled);
  }
}

}  // namespace
}  // namespace troupe::nn::cuda
