// The waiting strategy of RunInline(): some microseconds of spinning, since a
// peer on another core arrives within that time or not soon; then the core is
// yielded to other threads, which may be the ranks waited for. If spinning
// failed (ranks share a core), the next wait spins for a shorter time.
//
//   int spins = Waiter::kSpinsMax;               // kept for each rank
//   Waiter waiter(timeout, &spins);
//   while (!done()) {
//     if (!waiter.Wait()) return absl::DeadlineExceededError("it never came");
//   }

#ifndef COMM_LOCAL_WAITER_H_
#define COMM_LOCAL_WAITER_H_

#include <sched.h>

#include <algorithm>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace troupe::comm::internal {

class Waiter {
 public:
  Waiter(absl::Duration timeout, int* spins)
      : timeout_(timeout), spins_(spins), spins_now_(*spins) {}
  ~Waiter() {
    *spins_ = waits_ > spins_now_ ? std::max(spins_now_ / 2, kSpinsMin)
                                  : std::min(spins_now_ * 2, kSpinsMax);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  static constexpr int kSpinsMin = 16;
  static constexpr int kSpinsMax = 256;

  // Pauses; returns false when the time is over.
  bool Wait() {
    if (++waits_ <= spins_now_) {
      Pause();
      return true;
    }
    sched_yield();
    if (waits_ % kWaitsPerClock != 0) return true;
    const absl::Time now = absl::Now();
    if (deadline_ == absl::InfinitePast()) deadline_ = now + timeout_;
    return now < deadline_;
  }
  bool just_lost_patience() const { return waits_ == spins_now_; }

 private:
  static constexpr int kWaitsPerClock = 16;

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  const absl::Duration timeout_;
  int* const spins_;
  const int spins_now_;
  absl::Time deadline_ = absl::InfinitePast();
  std::int64_t waits_ = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_WAITER_H_
