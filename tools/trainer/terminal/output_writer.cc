#include "tools/trainer/terminal/output_writer.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace troupe::tools {
namespace {

// Bytes that a pipe accepts without blocking when poll() reports it as ready.
constexpr std::size_t kWriteBytes = 4096;  // PIPE_BUF
// Time after which a waiting Write() looks for a StopWaiting().
constexpr int kLookMs = 50;

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

bool OutputWriter::Write(absl::string_view text) {
  absl::MutexLock lock(&mutex_);
  if (text.empty()) return !lost_;
  if (cut_ && !WriteAll("\n")) return false;
  cut_ = !WriteAll(text);
  if (cut_) lost_ = true;
  return !lost_;
}

bool OutputWriter::WriteAll(absl::string_view text) {
  while (!text.empty()) {
    if (!WaitUntilReady()) {
      dropped_ = true;
      return false;
    }
    const ssize_t n = WriteReady(fd_, text);
    if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool OutputWriter::WaitUntilReady() const {
  pollfd entry = {fd_, POLLOUT, 0};
  for (int waited_ms = 0; waited_ms <= patience_ms_max_;) {
    const int ready = poll(&entry, 1, dropped_ ? 0 : kLookMs);
    if (ready > 0) return true;
    if (ready < 0) continue;  // a signal
    if (dropped_) return false;
    if (stopping_) waited_ms += kLookMs;
  }
  return false;
}

}  // namespace troupe::tools
