#include "tools/trainer/terminal/standard_streams.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

bool IsNull(int fd) {
  struct stat null = {}, found = {};
  return stat("/dev/null", &null) == 0 && fstat(fd, &found) == 0 &&
         null.st_rdev == found.st_rdev && S_ISCHR(found.st_mode);
}

// Closes these streams, opens what is closed, and ends the process with bit
// `fd` set for each stream that was open.
[[noreturn]] void OpenAfterClosing(const std::vector<int>& closed) {
  for (int fd : closed) close(fd);
  const StandardStreams were_open = OpenClosedStreams();
  for (int fd : closed) {
    if (!IsNull(fd)) std::_Exit(100 + fd);
  }
  // A file that is opened now is none of the three.
  if (open("/dev/null", O_RDONLY) <= STDERR_FILENO) std::_Exit(200);
  std::_Exit((were_open.input ? 1 : 0) | (were_open.output ? 2 : 0) |
             (were_open.error ? 4 : 0));
}

TEST(StandardStreamsDeathTest, WhatIsClosedBecomesNull) {
  EXPECT_EXIT(OpenAfterClosing({}), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(OpenAfterClosing({STDIN_FILENO}), testing::ExitedWithCode(6), "");
  EXPECT_EXIT(OpenAfterClosing({STDOUT_FILENO}), testing::ExitedWithCode(5),
              "");
  EXPECT_EXIT(OpenAfterClosing({STDIN_FILENO, STDERR_FILENO}),
              testing::ExitedWithCode(2), "");
  EXPECT_EXIT(OpenAfterClosing({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}),
              testing::ExitedWithCode(0), "");
}

TEST(StandardStreams, DumbTerminalsRewriteNothing) {
  EXPECT_FALSE(CanRewriteLines("dumb"));
  EXPECT_FALSE(CanRewriteLines(""));
  EXPECT_FALSE(CanRewriteLines("unknown"));
  EXPECT_FALSE(CanRewriteLines("emacs"));
  EXPECT_TRUE(CanRewriteLines("xterm-256color"));
  EXPECT_TRUE(CanRewriteLines("linux"));
  EXPECT_TRUE(CanRewriteLines("eterm-color"));  // Emacs's own terminal
}

}  // namespace
}  // namespace troupe::tools
