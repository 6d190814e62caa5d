// Links between simulated processes in one thread: a seed determines the delay
// of every frame, and the order of events; time is virtual.
//
//   SimNetwork network(/*processes=*/3, /*seed=*/7);
//   options.links = network.LinksOf(0);         // links of process 0
//   while (network.Step()) {
//   }
//   network.Cut(0, 1); network.Heal(0, 1);      // frames in transit wait
//   network.Pause(2); network.Resume(2);        // it receives nothing
//   network.Lose(1);                            // its links end, soon
//   network.Reset(0, 2);                        // this link ends
//
// Frames from one process to another arrive in order; the order between
// different pairs is random. A payload is read when it is delivered, not when
// it is sent, and SendDone is called later still, which exposes a caller that
// reuses it too early. Place() and Take() of a frame are two events.
//
// Payloads that a link sends with their announcement have up to 64 bytes, 1 KB
// or 16 KB: the seed chooses for each pair of processes.
//
// The other end can access lent memory in place: at once with an even seed,
// after a random delay with an odd one.
//
// Progress() of a link is a Step() of the whole network, so a caller that
// drives a communicator drives the network. The same calls give the same
// events.
//
// Threads: any; one steps at a time. The network outlives its links.

#ifndef COMM_SIM_SIM_LINK_H_
#define COMM_SIM_SIM_LINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "comm/link.h"
#include "comm/sim/sim_channel.h"
#include "comm/sim/sim_clock.h"
#include "comm/sim/sim_lent_ranges.h"

namespace troupe::comm {

class SimNetwork {
 public:
  SimNetwork(int processes, std::uint64_t seed);

  // Makes the links of a process; once for each process.
  std::vector<std::unique_ptr<Link>> LinksOf(int process);

  // Runs the next event. Returns false if there is none, or another thread runs
  // one.
  bool Step();
  // Returns the virtual time in microseconds.
  std::uint64_t now() const;
  // Returns the number of delivered frames.
  std::uint64_t delivered() const;

  void Cut(int a, int b) { SetHeld(a, b, true); }
  void Heal(int a, int b) { SetHeld(a, b, false); }
  void Pause(int process);
  void Resume(int process);
  // Ends the links of a process, as if it had died.
  void Lose(int process);
  // Ends a link as if the connection had been reset: both ends are notified. A
  // link that one end has not made yet stays.
  void Reset(int a, int b);

 private:
  class SimLink;
  // The end of a frame's delivery: its sender may reuse the payload.
  struct Later {
    std::uint64_t due;
    int from, to;
    SendDone* done;
  };
  // A loss that one end of a link must be notified of.
  struct Loss {
    std::uint64_t due;
    int at, peer;
    absl::Status why;
    bool after_frames;  // frames in transit are delivered first
  };
  struct Choice;

  // Index of what belongs to one direction of a link, or to one of its ends.
  int Pair(int from, int to) const { return from * processes_ + to; }
  Choice Choose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(int from, int to);
  void Tell(const Loss& loss);
  void SetHeld(int a, int b, bool held);
  void Send(int from, int to, const Frame& frame, const char* payload,
            SendDone* done, bool copy);
  bool IsMade(int a, int b) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Break(int a, int b, const absl::Status& why, bool after_frames = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(SimLink* link);
  std::size_t EagerBytes(int a, int b) const;

  const int processes_;
  const std::uint64_t seed_;
  mutable absl::Mutex mutex_;
  SimClock clock_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t delivered_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stepping_ ABSL_GUARDED_BY(mutex_) = false;
  // The end of `from` of its link to `to`; null if it is not made, or removed.
  std::vector<SimLink*> links_ ABSL_GUARDED_BY(mutex_);
  std::vector<SimChannel> channels_ ABSL_GUARDED_BY(mutex_);
  // Indices of all channels that have packets, and of some that had.
  std::set<int> busy_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> paused_ ABSL_GUARDED_BY(mutex_);
  // Whether a pair's link is broken; set in both directions.
  std::vector<bool> broken_ ABSL_GUARDED_BY(mutex_);
  std::vector<Later> later_ ABSL_GUARDED_BY(mutex_);
  std::vector<Loss> losses_ ABSL_GUARDED_BY(mutex_);
  SimLentRanges lent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm

#endif  // COMM_SIM_SIM_LINK_H_
