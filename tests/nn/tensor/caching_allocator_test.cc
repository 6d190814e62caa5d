#include "nn/tensor/caching_allocator.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/nn/testing/limited_memory.h"

namespace troupe::nn {
namespace {

constexpr std::size_t kSizes[] = {
    0,    1,    63,    64,    65,      191,     192,     193,
    1000, 4096, 65535, 65536, 1048512, 1048576, 1048577, 3 << 20};

TEST(CachingAllocator, AlignsEverySizeAndLetsAllOfItBeWritten) {
  CachingAllocator allocator;
  std::vector<StoragePtr> held;
  for (std::size_t bytes : kSizes) {
    StoragePtr block = *allocator.Allocate(bytes);
    EXPECT_EQ(block->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->data()) % 64, 0u)
        << bytes;
    std::memset(block->data(), 0xab, bytes);
    held.push_back(std::move(block));
  }
}

TEST(CachingAllocator, HandsAReleasedBlockOutAgain) {
  CachingAllocator allocator;
  for (std::size_t bytes : kSizes) {
    StoragePtr block = *allocator.Allocate(bytes);
    void* data = block->data();
    block.reset();
    const auto before = allocator.stats();
    StoragePtr again = *allocator.Allocate(bytes);
    EXPECT_EQ(again->data(), data) << bytes;
    EXPECT_EQ(allocator.stats().system_allocations, before.system_allocations);
  }
}

TEST(CachingAllocator, AStepOfEqualSizesAsksTheSystemOnce) {
  CachingAllocator allocator;
  for (int step = 0; step < 10; ++step) {
    std::vector<StoragePtr> activations;
    for (std::size_t bytes : kSizes) {
      activations.push_back(*allocator.Allocate(bytes));
    }
  }
  const auto stats = allocator.stats();
  EXPECT_EQ(stats.system_allocations, std::int64_t{std::size(kSizes)});
  EXPECT_EQ(stats.allocations, 10 * std::int64_t{std::size(kSizes)});
  EXPECT_EQ(stats.bytes_in_use, 0u);
  EXPECT_EQ(stats.bytes_cached, stats.bytes_in_use_peak);
}

TEST(CachingAllocator, CountsWhatIsInUseAndCached) {
  CachingAllocator allocator;
  StoragePtr a = *allocator.Allocate(1000);
  const std::size_t one = allocator.stats().bytes_in_use;
  EXPECT_GE(one, 1000u);
  StoragePtr b = *allocator.Allocate(1000);
  EXPECT_EQ(allocator.stats().bytes_in_use, 2 * one);
  a.reset();
  EXPECT_EQ(allocator.stats().bytes_in_use, one);
  EXPECT_EQ(allocator.stats().bytes_cached, one);
  EXPECT_EQ(allocator.stats().bytes_in_use_peak, 2 * one);
  allocator.ReleaseCached();
  EXPECT_EQ(allocator.stats().bytes_cached, 0u);
  EXPECT_EQ(allocator.stats().bytes_in_use, one);
}

TEST(CachingAllocator, KeepsNoMoreThanItMay) {
  CachingAllocator::Options options;
  options.cached_bytes_max = 100'000;
  CachingAllocator allocator(options);
  std::vector<StoragePtr> held;
  for (int i = 0; i < 10; ++i) held.push_back(*allocator.Allocate(30'000));
  held.clear();
  EXPECT_LE(allocator.stats().bytes_cached, 100'000u);
  EXPECT_GT(allocator.stats().bytes_cached, 60'000u);
}

// A training step, whose memory is larger than any fixed limit.
TEST(CachingAllocator, KeepsAllThatAStepReleases) {
  CachingAllocator::Options options;
  options.cached_bytes_max = 0;
  options.cached_of_peak_max = 2;
  CachingAllocator allocator(options);
  const StoragePtr parameters = *allocator.Allocate(1 << 20);
  // A forward keeps its activations; a backward releases each, and has
  // gradients of the same sizes for a short time.
  const auto step = [&] {
    std::vector<StoragePtr> activations;
    for (int i = 1; i <= 20; ++i) {
      activations.push_back(*allocator.Allocate(i * 70'000));
    }
    for (int i = 20; i >= 1; --i) {
      const StoragePtr gradient = *allocator.Allocate(i * 70'000);
      activations.pop_back();
    }
  };
  step();
  const auto first = allocator.stats();
  for (int i = 0; i < 3; ++i) step();
  const auto last = allocator.stats();
  EXPECT_GT(last.allocations, 4 * 40);
  EXPECT_EQ(last.system_allocations, first.system_allocations);
  EXPECT_EQ(last.bytes_cached, first.bytes_cached);
}

TEST(CachingAllocator, SizesThatDoNotComeBackDoNotPileUp) {
  CachingAllocator::Options options;
  options.cached_bytes_max = 0;
  options.cached_of_peak_max = 2;
  CachingAllocator allocator(options);
  for (int i = 1; i <= 100; ++i) *allocator.Allocate(i * 100'000);
  const auto stats = allocator.stats();
  EXPECT_GT(stats.bytes_in_use_peak, 10'000'000u);
  EXPECT_LE(stats.bytes_cached, 2 * stats.bytes_in_use_peak);
}

TEST(CachingAllocator, StoragesOutliveIt) {
  std::optional<CachingAllocator> allocator(std::in_place);
  StoragePtr a = *allocator->Allocate(100);
  StoragePtr b = *allocator->Allocate(3 << 20);
  allocator.reset();
  std::memset(a->data(), 1, a->bytes());
  std::memset(b->data(), 2, b->bytes());
  a.reset();
  b.reset();  // the last one frees the state; asan checks it
}

TEST(CachingAllocator, ThreadsAllocateAndReleaseForEachOther) {
  constexpr int kThreads = 4;
  constexpr int kBlocks = 500;
  std::optional<CachingAllocator> allocator(std::in_place);
  std::vector<std::vector<StoragePtr>> made(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kBlocks; ++i) {
        StoragePtr block = *allocator->Allocate(64 * (1 + i % 7));
        std::memset(block->data(), t, block->bytes());
        if (i % 2 == 0) made[t].push_back(std::move(block));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  for (int t = 0; t < kThreads; ++t) {
    for (const StoragePtr& block : made[t]) {
      const auto* data = static_cast<const unsigned char*>(block->data());
      for (std::size_t i = 0; i < block->bytes(); ++i) ASSERT_EQ(data[i], t);
    }
  }
  EXPECT_EQ(allocator->stats().allocations, kThreads * kBlocks);
  // Released by other threads than those that allocated, and after the
  // allocator.
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] { made[(t + 1) % kThreads].clear(); });
  }
  allocator.reset();
  for (std::thread& thread : threads) thread.join();
}

struct Limited {
  explicit Limited(std::size_t bytes_max)
      : memory(std::make_shared<LimitedMemory>()),
        allocator({/*cached_bytes_max=*/1 << 20, Device{}, memory}) {
    memory->bytes_max = bytes_max;
  }
  std::shared_ptr<LimitedMemory> memory;
  CachingAllocator allocator;
};

TEST(CachingAllocator, GivesBackWhatIsCachedBeforeItFails) {
  Limited limited(10'000);
  { const StoragePtr cached = *limited.allocator.Allocate(4096); }
  EXPECT_EQ(limited.allocator.stats().bytes_cached, 4096u);
  const absl::StatusOr<StoragePtr> large = limited.allocator.Allocate(8192);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(limited.memory->refusals(), 1);
  EXPECT_EQ(limited.allocator.stats().bytes_cached, 0u);
  EXPECT_EQ(limited.allocator.stats().bytes_in_use, 8192u);
}

TEST(CachingAllocator, SaysHowMuchWasAskedForHeldAndFree) {
  Limited limited(10'000);
  StoragePtr held = *limited.allocator.Allocate(8192);
  EXPECT_EQ(limited.allocator.Allocate(4000).status(),
            absl::ResourceExhaustedError(
                "cpu:0 has no memory for 3.9 KiB: tensors hold 8 KiB of it, "
                "1.8 KiB are free, nothing is cached"));
  EXPECT_EQ(limited.allocator.stats().bytes_in_use, 8192u);
  EXPECT_EQ(limited.allocator.stats().bytes_in_use_peak, 8192u);
  held.reset();
  EXPECT_TRUE(limited.allocator.Allocate(4000).ok());
}

TEST(CachingAllocator, NoBlockIsAsLargeAsTheAddressSpace) {
  CachingAllocator allocator;
  EXPECT_EQ(allocator.Allocate(std::size_t{1} << 62).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(StoragePtr, CountsItsHolders) {
  CachingAllocator allocator;
  StoragePtr a = *allocator.Allocate(10);
  StoragePtr b = a;
  StoragePtr c = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_EQ(b.get(), c.get());
  c = c;
  EXPECT_TRUE(c);
  b.reset();
  EXPECT_GT(allocator.stats().bytes_in_use, 0u);
  c = StoragePtr();
  EXPECT_EQ(allocator.stats().bytes_in_use, 0u);
}

}  // namespace
}  // namespace troupe::nn
