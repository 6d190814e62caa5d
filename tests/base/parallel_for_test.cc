#include "base/parallel_for.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

TEST(ParallelFor, EveryPieceOnce) {
  for (int threads : {0, 1, 2, 8}) {
    for (std::int64_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> done(count);
      ParallelFor(threads, count, [&](std::int64_t i) { ++done[i]; });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
    }
  }
}

TEST(ParallelFor, OneThreadIsTheCallersOwn) {
  const std::thread::id me = std::this_thread::get_id();
  ParallelFor(/*threads=*/1, /*count=*/10,
              [&](std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), me); });
  ParallelFor(/*threads=*/8, /*count=*/1,
              [&](std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), me); });
}

// Each piece waits for the other: without two threads the test would hang.
TEST(ParallelFor, PiecesRunAtTheSameTime) {
  std::atomic<int> begun{0};
  ParallelFor(/*threads=*/2, /*count=*/2, [&](std::int64_t) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  EXPECT_EQ(begun, 2);
}

// Threads with a stack larger than the address space cannot be made.
TEST(ParallelFor, GoesOnWhereNoThreadCanBeMade) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 56), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  std::vector<std::atomic<int>> done(100);
  ParallelFor(/*threads=*/4, /*count=*/100, [&](std::int64_t i) { ++done[i]; });
  for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  pthread_attr_destroy(&usual);
  pthread_attr_destroy(&huge);
}

}  // namespace
}  // namespace troupe::base
