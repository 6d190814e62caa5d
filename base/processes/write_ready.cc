#include "base/processes/write_ready.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace troupe::base {
namespace {

// Bytes that a pipe accepts without blocking when poll() reports it as ready.
constexpr std::size_t kWriteBytes = 4096;  // PIPE_BUF

bool IsPipe(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

}  // namespace

ssize_t WriteReady(int fd, absl::string_view text) {
  const std::size_t bytes = std::min(text.size(), kWriteBytes);
  if (IsPipe(fd)) {
    // O_NONBLOCK would belong to all processes that share the pipe.
    const iovec piece = {const_cast<char*>(text.data()), bytes};
    const ssize_t n = pwritev2(fd, &piece, 1, /*offset=*/-1, RWF_NOWAIT);
    if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS)) return n;
  }
  return write(fd, text.data(), bytes);
}

}  // namespace troupe::base
