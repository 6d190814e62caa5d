#include "comm/mpi/bounded_call.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace troupe::comm::internal {
namespace {

// Interval at which `goes_on` is called.
constexpr absl::Duration kAskEvery = absl::Milliseconds(20);

}  // namespace

bool CallWithin(std::function<void()> call, absl::Duration timeout,
                const std::function<bool()>& goes_on) {
  const auto done = std::make_shared<absl::Notification>();
  std::thread([call = std::move(call), done]() mutable {
    call();
    call = nullptr;
    done->Notify();
  }).detach();
  const absl::Time until = absl::Now() + timeout;
  for (;;) {
    const absl::Duration left = until - absl::Now();
    const absl::Duration turn =
        goes_on == nullptr ? left : std::min(left, kAskEvery);
    if (done->WaitForNotificationWithTimeout(turn)) return true;
    if (absl::Now() >= until) return false;
    if (goes_on != nullptr && !goes_on()) return false;
  }
}

}  // namespace troupe::comm::internal
