#include "base/fibers/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

TEST(FiberTest, RunsFromYieldToYield) {
  std::string seen;
  Fiber fiber([&](Fiber::Yielder& yielder) {
    seen += "a";
    yielder.Yield();
    seen += "b";
    yielder.Yield();
    seen += "c";
  });
  EXPECT_EQ(seen, "");
  for (const char* now : {"a|", "a|b|", "a|b|c|"}) {
    EXPECT_FALSE(fiber.done());
    fiber.Resume();
    seen += "|";
    EXPECT_EQ(seen, now);
  }
  EXPECT_TRUE(fiber.done());
}

TEST(FiberTest, OneThatNeverRanIsDestroyed) {
  auto kept = std::make_shared<int>(1);
  {
    Fiber fiber([kept](Fiber::Yielder&) {});
  }
  EXPECT_EQ(kept.use_count(), 1);
}

// Recurses through frames with data, so deep that it uses part of the stack.
int Sum(int depth, Fiber::Yielder& yielder, const std::function<void()>& last) {
  volatile char frame[512];
  frame[depth % 512] = static_cast<char>(depth % 7);
  if (depth == 0) {
    yielder.Yield();
    last();
    return 0;
  }
  return frame[depth % 512] + Sum(depth - 1, yielder, last);
}

TEST(FiberTest, ExceptionsLeaveThroughResume) {
  for (int round = 0; round < 200; ++round) {
    Fiber fiber([](Fiber::Yielder& yielder) {
      Sum(100, yielder, [] { throw std::runtime_error("planted"); });
    });
    fiber.Resume();
    std::string caught;
    try {
      fiber.Resume();
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "planted");
    EXPECT_TRUE(fiber.done());
  }
}

TEST(FiberTest, ManyInterleave) {
  constexpr int kFibers = 8;
  constexpr int kRounds = 1000;
  int sum = 0;
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (int k = 0; k < kFibers; ++k) {
    fibers.push_back(std::make_unique<Fiber>([&sum, k](Fiber::Yielder& me) {
      for (int i = 0; i < kRounds; ++i) {
        sum += k;
        me.Yield();
      }
    }));
  }
  for (int i = 0; i < kRounds; ++i) {
    for (auto& fiber : fibers) fiber->Resume();
    ASSERT_EQ(sum, (i + 1) * 28);
  }
}

TEST(FiberTest, AFiberResumesAnother) {
  std::string seen;
  Fiber inner([&](Fiber::Yielder& yielder) {
    seen += "i1";
    yielder.Yield();
    seen += "i2";
  });
  Fiber outer([&](Fiber::Yielder& yielder) {
    inner.Resume();
    seen += "o1";
    yielder.Yield();
    inner.Resume();
  });
  outer.Resume();
  outer.Resume();
  EXPECT_EQ(seen, "i1o1i2");
  EXPECT_TRUE(inner.done());
  EXPECT_TRUE(outer.done());
}

TEST(FiberTest, YieldsFromWithinAnother) {
  std::string seen;
  Fiber::Yielder* whole = nullptr;
  Fiber inner([&](Fiber::Yielder& yielder) {
    std::vector<int> memory(1000, 1);
    try {
      throw std::runtime_error("i1");
    } catch (const std::exception& error) {
      whole->Yield();  // while an exception is being handled
      seen += error.what();
    }
    yielder.Yield();
    seen += "i2";
    whole->Yield();
    throw std::runtime_error("i3");
  });
  Fiber outer([&](Fiber::Yielder& yielder) {
    whole = &yielder;
    while (!inner.done()) {
      try {
        inner.Resume();
        seen += "o";
      } catch (const std::exception& error) {
        seen += error.what();
      }
    }
  });
  outer.Resume();
  EXPECT_EQ(seen, "");
  try {
    throw std::runtime_error("main");
  } catch (const std::exception& error) {
    outer.Resume();
    EXPECT_STREQ(error.what(), "main");
  }
  EXPECT_EQ(seen, "i1oi2");
  EXPECT_FALSE(outer.done());
  outer.Resume();
  EXPECT_EQ(seen, "i1oi2i3");
  EXPECT_TRUE(outer.done());
}

TEST(FiberTest, OneThatWaitsIsUnwound) {
  auto kept = std::make_shared<int>(1);
  bool went_on = false;
  {
    Fiber fiber([&](Fiber::Yielder& yielder) {
      const std::shared_ptr<int> copy = kept;
      std::vector<int> memory(1000, *copy);
      Sum(50, yielder, [&] { went_on = true; });
    });
    fiber.Resume();
    EXPECT_EQ(kept.use_count(), 2);
  }
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_FALSE(went_on);
}

// A stack that is freed must leave no poisoned shadow memory behind, or
// AddressSanitizer would report the next owner of the addresses.
TEST(FiberTest, ItsStackLeavesNoMarksBehind) {
  constexpr std::uintptr_t kPage = 4096;
  std::uintptr_t page = 0;
  {
    Fiber fiber([&](Fiber::Yielder& yielder) {
      volatile char array[3 * kPage];
      array[0] = 1;
      page = (reinterpret_cast<std::uintptr_t>(&array) + kPage) / kPage * kPage;
      yielder.Yield();
    });
    fiber.Resume();
  }
  void* const there =
      mmap(reinterpret_cast<void*>(page), kPage, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(there, reinterpret_cast<void*>(page)) << "the stack is gone";
  std::memset(there, 1, kPage);
  munmap(there, kPage);
}

// Each fiber has its own list of caught exceptions in the C++ runtime.
TEST(FiberTest, YieldsInsideACatchBlock) {
  std::string seen;
  Fiber fiber([&](Fiber::Yielder& yielder) {
    try {
      throw std::runtime_error("of the fiber");
    } catch (const std::exception&) {
      yielder.Yield();
      try {
        throw;
      } catch (const std::exception& again) {
        seen = again.what();
      }
    }
  });
  fiber.Resume();
  EXPECT_EQ(std::current_exception(), nullptr);
  try {
    throw std::runtime_error("of the thread");
  } catch (const std::exception& mine) {
    fiber.Resume();
    EXPECT_STREQ(mine.what(), "of the thread");
  }
  EXPECT_EQ(seen, "of the fiber");
}

TEST(FiberTest, IsUnwoundWhileAnExceptionTravels) {
  auto kept = std::make_shared<int>(1);
  try {
    Fiber fiber([copy = kept](Fiber::Yielder& yielder) {
      const std::shared_ptr<int> another = copy;
      yielder.Yield();
    });
    fiber.Resume();
    throw std::runtime_error("planted");
  } catch (const std::exception&) {
  }
  EXPECT_EQ(kept.use_count(), 1);
}

// The stack has several MiB, of which only pages that are touched use memory.
TEST(FiberTest, HasADeepStack) {
  Fiber fiber([](Fiber::Yielder&) {
    volatile char large[Fiber::kStackBytes / 2];
    for (std::size_t i = 0; i < sizeof(large); i += 4096) large[i] = 1;
  });
  fiber.Resume();
  EXPECT_TRUE(fiber.done());
}

TEST(FiberDeathTest, TooDeepACallEndsTheProgram) {
  const auto overflow = [] {
    std::function<int(int)> deeper = [&](int n) {
      volatile char frame[2048];
      frame[n % 2048] = 1;
      return n + deeper(n + 1) + frame[0];
    };
    Fiber fiber([&](Fiber::Yielder&) { deeper(0); });
    fiber.Resume();
  };
  EXPECT_DEATH(overflow(), "");
}

// ThreadSanitizer must report no race when one fiber reads, after a switch,
// what another wrote, or when a second thread resumes a fiber.
TEST(FiberTest, GoesOnInAnotherThread) {
  std::vector<int> shared;
  Fiber fiber([&](Fiber::Yielder& yielder) {
    shared.push_back(1);
    yielder.Yield();
    shared.push_back(2);
  });
  fiber.Resume();
  shared.push_back(10);
  std::thread other([&] { fiber.Resume(); });
  other.join();
  EXPECT_EQ(shared, (std::vector<int>{1, 10, 2}));
}

TEST(FiberTest, AMillionSwitches) {
  Fiber fiber([](Fiber::Yielder& yielder) {
    for (int i = 0; i < 1'000'000; ++i) yielder.Yield();
  });
  int resumes = 0;
  while (!fiber.done()) {
    fiber.Resume();
    ++resumes;
  }
  EXPECT_EQ(resumes, 1'000'001);
}

}  // namespace
}  // namespace troupe::base
