#include "base/processes/write_ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"
#include "tests/base/processes/fill_pipe.h"

namespace troupe::base {
namespace {

// Expects that the write end of a pipe, which blocks, is written to while there
// is room, and not waited for when it is full.
void ExpectNoWait(int write_end) {
  ASSERT_EQ(fcntl(write_end, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(WriteReady(write_end, "step 1\n"), 7);
  FillPipe(write_end);
  alarm(60);  // ends a test that waits
  EXPECT_EQ(WriteReady(write_end, "step 2\n"), -1);
  EXPECT_EQ(errno, EAGAIN);
  alarm(0);
  // Other processes that share the pipe go on as before.
  EXPECT_EQ(fcntl(write_end, F_GETFL) & O_NONBLOCK, 0);
}

TEST(WriteReadyTest, DoesNotWaitForTheReaderOfAPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ExpectNoWait(ends[1]);
  close(ends[0]);
  close(ends[1]);
}

TEST(WriteReadyTest, DoesNotWaitForTheReaderOfAPipeWithAName) {
  const std::string path = FreshPath();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  const int writer = open(path.c_str(), O_WRONLY);
  ASSERT_GE(writer, 0);
  ExpectNoWait(writer);
  close(reader);
  close(writer);
}

}  // namespace
}  // namespace troupe::base
