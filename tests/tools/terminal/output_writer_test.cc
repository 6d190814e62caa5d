#include "tools/trainer/terminal/output_writer.h"

#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/base/processes/fill_pipe.h"

namespace troupe::tools {
namespace {

class OutputWriterTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(ends_), 0); }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  std::string Read(std::size_t bytes) {
    std::string text(bytes, ' ');
    for (std::size_t at = 0; at < bytes;) {
      const ssize_t n = read(ends_[0], &text[at], bytes - at);
      if (n <= 0) return text.substr(0, at);
      at += static_cast<std::size_t>(n);
    }
    return text;
  }

  int ends_[2];
};

TEST_F(OutputWriterTest, WaitsForASlowReader) {
  OutputWriter out(ends_[1]);
  const std::string text(300'000, 'x');  // more than a pipe holds
  bool written = false;
  std::thread writer([&] { written = out.Write(text); });
  EXPECT_EQ(Read(text.size()), text);
  writer.join();
  EXPECT_TRUE(written);
}

TEST_F(OutputWriterTest, AStopEndsAWriteThatWaits) {
  OutputWriter out(ends_[1], /*patience_ms_max=*/1);
  base::FillPipe(ends_[1]);
  bool written = true;
  std::thread writer([&] { written = out.Write("lost\n"); });
  out.StopWaiting();
  writer.join();
  EXPECT_FALSE(written);
}

TEST_F(OutputWriterTest, WritesAgainOnceTheReaderReads) {
  OutputWriter out(ends_[1], /*patience_ms_max=*/1);
  out.StopWaiting();
  const std::size_t filled = base::FillPipe(ends_[1]);
  EXPECT_FALSE(out.Write("lost\n"));
  EXPECT_FALSE(out.Write("lost too\n"));
  EXPECT_EQ(Read(filled), std::string(filled, '.'));
  // Text was lost, as it still says.
  EXPECT_FALSE(out.Write("the end\n"));
  EXPECT_EQ(Read(9), "\nthe end\n");
}

TEST_F(OutputWriterTest, AStopLosesNothingThatIsRead) {
  OutputWriter out(ends_[1]);
  out.StopWaiting();
  EXPECT_TRUE(out.Write("the end\n"));
  EXPECT_EQ(Read(8), "the end\n");
}

TEST_F(OutputWriterTest, AnErrorIsTold) {
  signal(SIGPIPE, SIG_IGN);
  close(ends_[0]);
  OutputWriter out(ends_[1]);
  EXPECT_FALSE(out.Write("lost\n"));
  EXPECT_FALSE(out.Write(""));
  ends_[0] = dup(ends_[1]);  // for TearDown()
}

}  // namespace
}  // namespace troupe::tools
