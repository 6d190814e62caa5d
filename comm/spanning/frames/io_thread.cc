#include "comm/spanning/frames/io_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"

namespace troupe::comm::internal {
namespace {

// Limit on one sleep, so that a missed notification delays work, but never
// blocks it.
constexpr absl::Duration kSleepMax = absl::Milliseconds(100);
// Sleep while other threads drive the links.
constexpr absl::Duration kAway = absl::Microseconds(500);

}  // namespace

IoThread::Bell::Bell() : fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  TROUPE_CHECK(fd >= 0, "a process has descriptors left");
}

IoThread::Bell::~Bell() { close(fd); }

void IoThread::Bell::Ring() {
  if (!asleep.load() || !asleep.exchange(false)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof(one));
}

IoThread::IoThread(Switchboard* board, absl::Duration look_for)
    : board_(*board), look_for_(look_for), bell_(std::make_shared<Bell>()) {
  board_.SetAlarm([bell = bell_] { bell->Ring(); });
  try {
    thread_ = std::thread([this] { Loop(); });
  } catch (const std::system_error& error) {
    // The exception's own text names neither the thread nor a remedy.
    throw std::runtime_error(absl::StrCat(
        "the system refuses the thread that moves data between "
        "processes: ",
        error.code().message(), "; raise its limits (ulimit -u and -v)"));
  }
  pthread_setname_np(thread_.native_handle(), "fabric");
}

IoThread::~IoThread() {
  stop_.store(true);
  bell_->asleep.store(true);
  bell_->Ring();
  thread_.join();
}

void IoThread::Loop() {
  absl::Time idle_since = absl::InfinitePast();
  while (!stop_.load()) {
    if (!board_.driven() && board_.Progress()) {
      idle_since = absl::InfinitePast();
      continue;
    }
    if (!board_.driven()) {
      const absl::Time now = absl::Now();
      if (idle_since == absl::InfinitePast()) idle_since = now;
      if (now - idle_since < look_for_) {
        sched_yield();
        continue;
      }
    }
    Sleep();
  }
}

void IoThread::Sleep() {
  std::vector<pollfd> entries = {{bell_->fd, POLLIN, 0}};
  absl::Duration patience = board_.driven() ? kAway : kSleepMax;
  bell_->asleep.store(true);
  if (!board_.driven()) {
    for (const auto& link : board_.links()) {
      if (link == nullptr || board_.lost(link->peer())) continue;
      pollfd entry = {-1, 0, 0};
      if (!link->Arm(&entry, &patience)) {
        bell_->asleep.store(false);
        return;
      }
      if (entry.fd >= 0) entries.push_back(entry);
    }
    // A task posted before `asleep` was set did not ring the bell.
    if (board_.has_tasks()) patience = absl::ZeroDuration();
  }
  if (!stop_.load()) {
    const timespec wait = absl::ToTimespec(std::min(patience, kSleepMax));
    ppoll(entries.data(), entries.size(), &wait, /*sigmask=*/nullptr);
  }
  bell_->asleep.store(false);
  std::uint64_t rings;
  [[maybe_unused]] const ssize_t got = read(bell_->fd, &rings, sizeof(rings));
}

}  // namespace troupe::comm::internal
