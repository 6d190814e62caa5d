#include "tools/trainer/last_words.h"

#include <new>
#include <thread>

#include "gtest/gtest.h"
#include "tools/trainer/exit_codes.h"

namespace troupe::tools {
namespace {

TEST(LastWordsDeathTest, AnExceptionThatNothingHandlesIsOneLineAndACode) {
  EXPECT_EXIT(
      {
        SayLastWords();
        // A thread has nobody above it.
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

}  // namespace
}  // namespace troupe::tools
