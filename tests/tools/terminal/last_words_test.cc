#include "tools/trainer/terminal/last_words.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <thread>

#include "gtest/gtest.h"
#include "tests/base/processes/fill_pipe.h"
#include "tools/trainer/terminal/exit_codes.h"

namespace troupe::tools {
namespace {

TEST(LastWordsDeathTest, AnExceptionThatNothingHandlesIsOneLineAndACode) {
  EXPECT_EXIT(
      {
        SayLastWords();
        // Nothing catches an exception of a thread.
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      testing::ExitedWithCode(kExitFailed),
      "^trainer: ended by an exception: std::bad_alloc; where memory ran out, "
      "raise its limit \\(ulimit -v\\) or use fewer ranks\n$");
  EXPECT_EXIT(
      {
        SayLastWords();
        std::thread([] { throw 7; }).join();
      },
      testing::ExitedWithCode(kExitFailed), "not a std::exception");
}

// Records that its message is requested, and waits a while for another thread
// to request one.
class Slow : public std::exception {
 public:
  const char* what() const noexcept override {
    static std::atomic<int> asked{0};
    std::fputs("asked\n", stderr);
    ++asked;
    for (int i = 0; i < 1000 && asked < 2; ++i) std::this_thread::yield();
    return "slow";
  }
};

TEST(LastWordsDeathTest, ThreadsThatFailTogetherSayOneLine) {
  EXPECT_EXIT(
      {
        SayLastWords();
        std::thread other([] { throw Slow(); });
        std::thread([] { throw Slow(); }).join();
        other.join();
      },
      testing::ExitedWithCode(kExitFailed),
      "^asked\ntrainer: ended by an exception: slow; [^\n]*\n$");
}

TEST(LastWordsDeathTest, TheProcessEndsThoughNothingReadsThem) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (pipe(ends) != 0) std::_Exit(100);
        base::FillPipe(ends[1]);
        dup2(ends[1], STDERR_FILENO);
        SayLastWords();
        std::thread([] { throw 7; }).join();
      },
      testing::ExitedWithCode(kExitFailed), "^$");
}

}  // namespace
}  // namespace troupe::tools
