// When each peer was last heard of, and who has been silent for too long.
//
//   Liveness liveness(/*timeout=*/std::chrono::seconds(10));
//   liveness.Watch(1, now);             // from now on it must be heard
//   liveness.Heard(1, now);
//   std::optional<Liveness::Silence> who = liveness.FindSilent(now);
//   if (who) Blame(who->peer, who->duration);
//
// The clock is the caller's: a monotonic one, of the process that waits; no
// time of another process counts.

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

  // How often a sign is sent, and looked for: four in a time-out, so that one
  // that is late blames nobody.
  Duration interval() const { return timeout_ / 4; }
  Duration timeout() const { return timeout_; }

  void Watch(int peer, TimePoint now) { heard_[peer] = now; }
  void Forget(int peer) { heard_.erase(peer); }
  // One that is not watched is not looked for.
  void Heard(int peer, TimePoint now) {
    const auto found = heard_.find(peer);
    if (found != heard_.end()) found->second = now;
  }
  // The one that has been silent for longest, if it is too long.
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
  // This process itself may have been stopped: then nobody else is to blame,
  // and all have a time-out from now on.
  void Restart(TimePoint now) {
    for (auto& [peer, heard] : heard_) heard = now;
  }

 private:
  const Duration timeout_;
  std::map<int, TimePoint> heard_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_LIVENESS_H_
