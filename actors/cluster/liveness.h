// Failure detection by time-out: notes when each peer last gave a sign of life,
// and finds a peer that has been silent for too long.
//
//   Liveness liveness(/*timeout=*/std::chrono::seconds(10));
//   liveness.Watch(1, now);             // from now on it must be heard
//   liveness.Heard(1, now);
//   std::optional<Liveness::Silence> who = liveness.FindSilent(now);
//   if (who) Blame(who->peer, who->duration);
//   SetTimer(liveness.UntilNextCheck(now));
//
// The time-out is a promise to users: the error about a peer that has stopped
// is complete by then. So a peer is silent a little earlier, and the rest of
// the time-out is for asking the ranks what they wait for (held_verdict.h).
//
// Times are from the caller's monotonic clock, in the process that waits; times
// of other processes are never compared.

#ifndef ACTORS_CLUSTER_LIVENESS_H_
#define ACTORS_CLUSTER_LIVENESS_H_

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

namespace troupe::actors {

class Liveness {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;
  struct Silence {
    int peer = 0;
    Duration duration;
  };

  explicit Liveness(Duration timeout) : timeout_(timeout) {}

  // Returns the interval at which signs of life are sent: a quarter of the
  // time-out, so that one late sign does not count as silence.
  Duration interval() const { return timeout_ / 4; }
  Duration timeout() const { return timeout_; }
  // Returns the silence after which a peer is blamed: 15/16 of the time-out.
  Duration silence_max() const { return timeout_ - timeout_ / 16; }

  void Watch(int peer, TimePoint now) { heard_[peer] = now; }
  void Forget(int peer) { heard_.erase(peer); }
  // Notes a sign of life; ignored for a peer that is not watched.
  void Heard(int peer, TimePoint now) {
    const auto found = heard_.find(peer);
    if (found != heard_.end()) found->second = now;
  }
  // Returns the peer that has been silent for longest, if that has reached
  // silence_max().
  std::optional<Silence> FindSilent(TimePoint now) const {
    std::optional<Silence> longest;
    for (const auto& [peer, heard] : heard_) {
      const Duration silent = now - heard;
      if (silent < silence_max() || (longest && silent <= longest->duration)) {
        continue;
      }
      longest = Silence{peer, silent};
    }
    return longest;
  }
  // Returns the time until the next call of FindSilent(): an interval, or less
  // if a peer that is late would be silent by then.
  Duration UntilNextCheck(TimePoint now) const {
    Duration next = interval();
    for (const auto& [peer, heard] : heard_) {
      next = std::min(next, silence_max() - (now - heard));
    }
    return std::max(next, interval() / 64);
  }
  // Gives all peers a new time-out from now on. Called when this process itself
  // may have been stopped, so that no peer is to blame.
  void Restart(TimePoint now) {
    for (auto& [peer, heard] : heard_) heard = now;
  }

 private:
  const Duration timeout_;
  std::map<int, TimePoint> heard_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_LIVENESS_H_
