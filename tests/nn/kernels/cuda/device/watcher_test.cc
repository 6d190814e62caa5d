#include "nn/kernels/cuda/device/watcher.h"

#include <cstdint>
#include <memory>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::nn::cuda {
namespace {

// Waits 20 s before a stall counts as a deadlock, because another thread may
// still continue.
emulated_cuda::Options WithThreads(std::uint64_t seed) {
  emulated_cuda::Options options = EmulatedWorld::OptionsOf(seed);
  options.stall_seconds = 20;
  return options;
}

TEST(WatcherTest, WakesOnceWhenAnEventIsDone) {
  for (std::uint64_t seed : EverySeed(20)) {
    const EmulatedWorld world(WithThreads(seed));
    const auto streams = *Streams::Create(0);
    const auto pool = std::make_shared<EventPool>(0);
    std::atomic<int> wakeups{0};
    auto woken = std::make_unique<absl::Notification>();
    auto watcher = *Watcher::Start(0, [&] {
      ++wakeups;
      woken->Notify();
    });
    for (int round = 1; round <= 3; ++round) {
      watcher->Watch({*EventPool::Record(pool, streams->Of(Queue::kCompute)),
                      *EventPool::Record(pool, streams->Of(Queue::kCopy))});
      woken->WaitForNotification();
      watcher->Watch({});
      EXPECT_EQ(wakeups, round);
      woken = std::make_unique<absl::Notification>();
    }
    watcher.reset();
    EXPECT_EQ(wakeups, 3);
    // The watcher has released its marks: six recordings need no more events
    // than were in use at the same time.
    EXPECT_LE(pool->created(), 4);
  }
}

TEST(WatcherTest, EndsWhileItWatches) {
  const EmulatedWorld world(WithThreads(1));
  auto watcher = *Watcher::Start(0, [] {});
  EXPECT_EQ(watcher->looks(), 0);
}

// The host gives work and sleeps; the watcher wakes it when events complete.
TEST(WatcherTest, DrivesADevice) {
  for (std::uint64_t seed : EverySeed(20)) {
    const EmulatedWorld world(WithThreads(seed));
    auto device = *CudaDevice::Open(0);
    absl::Mutex mutex;
    bool news = false;
    ASSERT_TRUE(device
                    ->SetWakeup(
                        [&] {
                          absl::MutexLock lock(&mutex);
                          news = true;
                        },
                        /*watch=*/true)
                    .ok());
    Tensor x = OnDevice(*device, Queue::kCompute, {1});
    for (int i = 0; i < 5; ++i) x = Sum(*device, Queue::kCompute, x, x);
    const base::Event done = device->Record(Queue::kCompute);
    while (!done.ready()) {
      if (device->Progress()) continue;
      absl::MutexLock lock(&mutex);
      mutex.Await(absl::Condition(&news));
      news = false;
    }
    EXPECT_TRUE(done.status().ok());
  }
}

}  // namespace
}  // namespace troupe::nn::cuda
