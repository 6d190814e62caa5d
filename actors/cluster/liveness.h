// Failure detection by time-out: notes when each peer last gave a sign of life,
// and finds a peer that has been silent for too long.
//
//   Liveness liveness(/*timeout=*/std::chrono::seconds(10));
//   liveness.Watch(1, now);             // from now on it must be heard
//   liveness.Heard(1, now);
//   std::optional<Liveness::Silence> who = liveness.FindSilent(now);
//   if (who) Blame(who->peer, who->duration);
//
// Times are from the caller's monotonic clock, in the process that waits; times
// of other processes are never compared.

#ifndef ACTORS_CLUSTER_LIVENESS_H_
#define ACTORS_CLUSTER_LIVENESS_H_

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

  // Returns the interval at which signs of life are sent and checked: a quarter
  // of the time-out, so that one late sign does not count as silence.
  Duration interval() const { return timeout_ / 4; }
  Duration timeout() const { return timeout_; }

  void Watch(int peer, TimePoint now) { heard_[peer] = now; }
  void Forget(int peer) { heard_.erase(peer); }
  // Notes a sign of life; ignored for a peer that is not watched.
  void Heard(int peer, TimePoint now) {
    const auto found = heard_.find(peer);
    if (found != heard_.end()) found->second = now;
  }
  // Returns the peer that has been silent for longest, if that has reached the
  // time-out.
  std::optional<Silence> FindSilent(TimePoint now) const {
    std::optional<Silence> longest;
    for (const auto& [peer, heard] : heard_) {
      const Duration silent = now - heard;
      if (silent < timeout_ || (longest && silent <= longest->duration)) {
        continue;
      }
      longest = Silence{peer, silent};
    }
    return longest;
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
