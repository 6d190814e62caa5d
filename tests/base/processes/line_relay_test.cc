#include "base/processes/line_relay.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::base {
namespace {

class LineRelayTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe2(ends_, O_NONBLOCK), 0); }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  // Returns all text written.
  std::string Written(OutputQueue& queue) {
    std::string all, piece(4096, ' ');
    while (true) {
      if (queue.waiting() > 0) queue.Flush();
      const ssize_t n = read(ends_[0], &piece[0], piece.size());
      if (n <= 0) return all;
      all += piece.substr(0, static_cast<std::size_t>(n));
    }
  }

  int ends_[2];
};

TEST_F(LineRelayTest, OnlyWholeLines) {
  OutputQueue queue(ends_[1]);
  LineRelay relay({"[1] ", /*clears_line=*/false}, &queue);
  relay.Add("a");
  EXPECT_EQ(Written(queue), "");
  relay.Add("b\ncd\ne");
  EXPECT_EQ(Written(queue), "[1] ab\n[1] cd\n");
  relay.End();
  EXPECT_EQ(Written(queue), "[1] e\n");
  relay.End();
  EXPECT_EQ(Written(queue), "");
}

TEST_F(LineRelayTest, TwoDoNotMix) {
  OutputQueue queue(ends_[1]);
  LineRelay one({"[1] ", false}, &queue), two({"[2] ", false}, &queue);
  one.Add("a");
  two.Add("x\n");
  one.Add("b\n");
  EXPECT_EQ(Written(queue), "[2] x\n[1] ab\n");
}

TEST_F(LineRelayTest, ALineWithoutEndIsCut) {
  OutputQueue queue(ends_[1]);
  LineRelay relay({"", false}, &queue);
  relay.Add(std::string(kLineBytesMax + 3, 'x'));
  EXPECT_EQ(Written(queue), std::string(kLineBytesMax, 'x') + "\n");
  relay.Add("\n");
  EXPECT_EQ(Written(queue), "xxx\n");
  EXPECT_EQ(relay.last_line(), "xxx");
}

TEST_F(LineRelayTest, TheLastLine) {
  OutputQueue queue(ends_[1]);
  LineRelay relay({"[1] ", false}, &queue);
  EXPECT_EQ(relay.last_line(), "");
  relay.Add("first\nit broke\n  \n");
  EXPECT_EQ(relay.last_line(), "it broke");
  relay.Add(std::string(3 * kLastLineBytesMax, 'y') + "\n");
  EXPECT_EQ(relay.last_line(), std::string(kLastLineBytesMax, 'y'));
}

TEST_F(LineRelayTest, NobodyReads) {
  OutputQueue queue(STDIN_FILENO);
  const int closed = dup(ends_[1]);
  close(closed);
  OutputQueue lost(closed);
  lost.Add("a\n");
  lost.Flush();
  EXPECT_EQ(lost.waiting(), 0u);
  lost.Add("b\n");
  EXPECT_EQ(lost.waiting(), 0u);
}

TEST_F(LineRelayTest, WaitsWhileThePipeIsFull) {
  OutputQueue queue(ends_[1]);
  std::string all;
  for (int i = 0; i < 50'000; ++i) absl::StrAppend(&all, i, "\n");
  queue.Add(all);
  for (int i = 0; i < 200; ++i) queue.Flush();
  EXPECT_GT(queue.waiting(), 0u);
  EXPECT_EQ(Written(queue), all);
}

}  // namespace
}  // namespace troupe::base
