#include "tools/trainer/terminal/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

namespace troupe::tools {
namespace {

// Returns whether `fd` was open. All lower descriptors are open, so that
// open() returns this one.
bool OpenIfClosed(int fd) {
  if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) return true;
  open("/dev/null", O_RDWR);
  return false;
}

}  // namespace

StandardStreams OpenClosedStreams() {
  StandardStreams were_open;
  were_open.input = OpenIfClosed(STDIN_FILENO);
  were_open.output = OpenIfClosed(STDOUT_FILENO);
  were_open.error = OpenIfClosed(STDERR_FILENO);
  return were_open;
}

bool CanRewriteLines(const std::string& term) {
  for (const char* plain : {"", "dumb", "unknown", "emacs"}) {
    if (term == plain) return false;
  }
  return true;
}

}  // namespace troupe::tools
