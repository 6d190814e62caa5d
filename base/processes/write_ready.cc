#include "base/processes/write_ready.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace troupe::base {
namespace {

// Bytes that a pipe accepts without blocking when poll() reports it as ready.
constexpr std::size_t kWriteBytes = 4096;  // PIPE_BUF

bool IsPipe(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

// Writes to the pipe of `fd` through a description of its own, which alone does
// not block: O_NONBLOCK on `fd` would hold for all processes that share it.
// Returns what write() returns, with EOPNOTSUPP if the pipe cannot be opened
// again.
ssize_t WriteByReopening(int fd, const char* data, std::size_t bytes) {
  const std::string path = absl::StrCat("/proc/self/fd/", fd);
  const int own = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (own < 0) {
    errno = EOPNOTSUPP;
    return -1;
  }
  const ssize_t n = write(own, data, bytes);
  const int error = errno;
  close(own);
  errno = error;
  return n;
}

}  // namespace

ssize_t WriteReady(int fd, absl::string_view text) {
  const std::size_t bytes = std::min(text.size(), kWriteBytes);
  if (IsPipe(fd)) {
    const iovec piece = {const_cast<char*>(text.data()), bytes};
    ssize_t n = pwritev2(fd, &piece, 1, /*offset=*/-1, RWF_NOWAIT);
    if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS)) return n;
    // A pipe with a name, or a kernel before 6.4.
    n = WriteByReopening(fd, text.data(), bytes);
    if (n >= 0 || errno != EOPNOTSUPP) return n;
  }
  return write(fd, text.data(), bytes);
}

}  // namespace troupe::base
