#include "tools/trainer/terminal/output_writer.h"

#include <errno.h>
#include <poll.h>

#include <cstddef>

#include "base/processes/write_ready.h"

namespace troupe::tools {
namespace {

// Time after which a waiting Write() looks for a StopWaiting().
constexpr int kLookMs = 50;

}  // namespace

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
    const ssize_t n = base::WriteReady(fd_, text);
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
