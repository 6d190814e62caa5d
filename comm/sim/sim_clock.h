// The virtual time of a simulated network, and the random delays of its events.
//
//   SimClock clock(/*seed=*/7);
//   const std::uint64_t due = clock.AfterDelay();
//   clock.AdvanceTo(due);                       // the event happens
//
// Times are microseconds since the network was made. The same calls give the
// same times. Threads: one at a time.

#ifndef COMM_SIM_SIM_CLOCK_H_
#define COMM_SIM_SIM_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <limits>

namespace troupe::comm {

class SimClock {
 public:
  // Time of an event that is not going to happen.
  static constexpr std::uint64_t kNever =
      std::numeric_limits<std::uint64_t>::max();
  // Limit on a delay; fifteen of sixteen have at most 20 microseconds.
  static constexpr std::uint64_t kDelayMax = 1000;

  explicit SimClock(std::uint64_t seed) : state_(seed) {}

  std::uint64_t now() const { return now_; }
  // Sets the time, unless that has passed already.
  void AdvanceTo(std::uint64_t time) { now_ = std::max(now_, time); }
  // Draws a delay, from 1 to kDelayMax, and returns the time when it is over.
  std::uint64_t AfterDelay() {
    const std::uint64_t bits = Bits();
    const std::uint64_t most = bits % 16 == 0 ? kDelayMax : 20;
    return now_ + 1 + (bits >> 8) % most;
  }

 private:
  // Returns random bits, by splitmix64.
  std::uint64_t Bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
  std::uint64_t now_ = 0;
};

}  // namespace troupe::comm

#endif  // COMM_SIM_SIM_CLOCK_H_
