// Takes Abseil's locks in every possible way, from two threads. A way that
// //third_party/abseil_tsan does not cover is reported as a race under
// --config=tsan.

#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr int kTurns = 200;
constexpr absl::Duration kLongEnough = absl::Seconds(60);

// Two threads count in turns. `wait` must return with the mutex held, when it
// is the turn of its thread.
template <typename Wait>
void TakeTurns(Wait wait) {
  absl::Mutex mutex;
  absl::CondVar changed;
  int count = 0;
  auto run = [&](int me) {
    for (int i = 0; i < kTurns; ++i) {
      auto my_turn = [&] { return count % 2 == me; };
      wait(mutex, changed, absl::Condition(&my_turn));
      ++count;
      changed.SignalAll();
      mutex.Unlock();
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  EXPECT_EQ(count, 2 * kTurns);
}

TEST(AbseilTsanTest, LockAndAwait) {
  TakeTurns([](absl::Mutex& mutex, absl::CondVar&, absl::Condition my_turn) {
    mutex.Lock();
    mutex.Await(my_turn);
  });
}

TEST(AbseilTsanTest, LockAndAwaitWithLimit) {
  TakeTurns([](absl::Mutex& mutex, absl::CondVar&, absl::Condition my_turn) {
    mutex.Lock();
    EXPECT_TRUE(mutex.AwaitWithTimeout(my_turn, kLongEnough));
    EXPECT_TRUE(mutex.AwaitWithDeadline(my_turn, absl::InfiniteFuture()));
  });
}

TEST(AbseilTsanTest, LockWhen) {
  TakeTurns([](absl::Mutex& mutex, absl::CondVar&, absl::Condition my_turn) {
    mutex.LockWhen(my_turn);
  });
}

TEST(AbseilTsanTest, LockWhenWithLimit) {
  TakeTurns([](absl::Mutex& mutex, absl::CondVar&, absl::Condition my_turn) {
    EXPECT_TRUE(mutex.LockWhenWithTimeout(my_turn, kLongEnough));
    mutex.Unlock();
    EXPECT_TRUE(mutex.LockWhenWithDeadline(my_turn, absl::InfiniteFuture()));
  });
}

TEST(AbseilTsanTest, CondVar) {
  TakeTurns(
      [](absl::Mutex& mutex, absl::CondVar& changed, absl::Condition my_turn) {
        mutex.Lock();
        while (!my_turn.Eval()) changed.Wait(&mutex);
      });
}

TEST(AbseilTsanTest, CondVarWithLimit) {
  TakeTurns(
      [](absl::Mutex& mutex, absl::CondVar& changed, absl::Condition my_turn) {
        mutex.Lock();
        while (!my_turn.Eval()) changed.WaitWithTimeout(&mutex, kLongEnough);
        EXPECT_TRUE(my_turn.Eval());
      });
}

TEST(AbseilTsanTest, ReadersAndTryLock) {
  absl::Mutex mutex;
  int written = 0;
  std::thread writer([&] {
    for (int i = 0; i < kTurns; ++i) {
      if (mutex.TryLock()) {
        ++written;
        mutex.Unlock();
      }
    }
  });
  int seen = 0;
  for (int i = 0; i < kTurns; ++i) {
    absl::ReaderMutexLock lock(&mutex);
    seen = written;
  }
  writer.join();
  EXPECT_LE(seen, written);
}

// Expects that `wait` returns only after the notification, and that it orders
// the read of the value.
template <typename Wait>
void WaitForWriter(Wait wait) {
  for (int i = 0; i < kTurns; ++i) {
    int value = 0;
    absl::Notification written;
    std::thread writer([&] {
      value = 1;
      written.Notify();
    });
    wait(written);
    EXPECT_EQ(value, 1);
    writer.join();
  }
}

TEST(AbseilTsanTest, Notification) {
  WaitForWriter(
      [](absl::Notification& written) { written.WaitForNotification(); });
  WaitForWriter([](absl::Notification& written) {
    EXPECT_TRUE(written.WaitForNotificationWithTimeout(kLongEnough));
  });
  WaitForWriter([](absl::Notification& written) {
    EXPECT_TRUE(
        written.WaitForNotificationWithDeadline(absl::InfiniteFuture()));
  });
  WaitForWriter([](absl::Notification& written) {
    while (!written.HasBeenNotified()) std::this_thread::yield();
  });
}

TEST(AbseilTsanTest, BlockingCounter) {
  for (int i = 0; i < kTurns; ++i) {
    int first = 0, second = 0;
    absl::BlockingCounter written(2);
    auto write = [&](int* value) {
      *value = 1;
      written.DecrementCount();
    };
    std::thread a(write, &first), b(write, &second);
    written.Wait();
    EXPECT_EQ(first + second, 2);
    a.join();
    b.join();
  }
}

TEST(AbseilTsanTest, StatusSharedByTwoThreads) {
  for (int i = 0; i < kTurns; ++i) {
    absl::Status status = absl::UnavailableError(std::string(100, 'x'));
    std::thread other([copy = status]() mutable {
      EXPECT_EQ(copy.message().size(), 100);
      copy = absl::OkStatus();
    });
    status = absl::OkStatus();
    other.join();
  }
}

}  // namespace
}  // namespace troupe
