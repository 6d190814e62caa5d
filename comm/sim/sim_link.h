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

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "comm/link.h"

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
  struct Packet {
    Frame frame;
    const char* payload = nullptr;
    std::string copy;
    SendDone* done = nullptr;
    bool copied = false;
  };
  // The frames from one process to another.
  struct Lane {
    SimLink* from = nullptr;
    SimLink* to = nullptr;
    std::deque<Packet> packets;
    std::uint64_t due = 0;  // time of the first packet's next event
    bool placed = false;    // whether Place() was called for the first
    char* place = nullptr;
    bool held = false;
  };
  struct Later {
    std::uint64_t due;
    int from, to;
    SendDone* done;
  };
  // A range that one process lends to another.
  struct Loan {
    SharedRange range;
    std::uint64_t due = 0;  // time from which the other can use it
  };
  // A loss that one end of a link must be notified of.
  struct Loss {
    std::uint64_t due;
    int at, peer;
    absl::Status why;
    bool after_frames;  // frames in transit are delivered first
  };
  struct Choice;

  Lane& lane(int from, int to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return lanes_[from * processes_ + to];
  }
  std::uint64_t Delay() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::uint64_t Bits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Choice Choose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(Lane* lane);
  void Tell(const Loss& loss);
  void SetHeld(int a, int b, bool held);
  void Send(int from, int to, const Frame& frame, const char* payload,
            SendDone* done, bool copy);
  bool IsMade(int a, int b) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Break(int a, int b, const absl::Status& why, bool after_frames = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(SimLink* link);
  bool Lend(int from, int to, const SharedRange& range);
  void TakeBack(int from, int to, std::uint64_t id);
  std::shared_ptr<char> Borrow(int by, int from, std::uint64_t id,
                               std::uint64_t offset, std::size_t bytes);
  bool Holds(int by, int from) const;
  std::size_t EagerBytes(int a, int b) const;

  const int processes_;
  const bool lends_at_once_;
  const std::uint64_t seed_;
  mutable absl::Mutex mutex_;
  std::uint64_t state_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t now_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t delivered_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stepping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> paused_ ABSL_GUARDED_BY(mutex_);
  // Whether a pair's link is broken; set in both directions.
  std::vector<bool> broken_ ABSL_GUARDED_BY(mutex_);
  std::vector<Later> later_ ABSL_GUARDED_BY(mutex_);
  std::vector<Loss> losses_ ABSL_GUARDED_BY(mutex_);
  // Indexed by the process that lends, the one that borrows, and the range.
  std::map<std::tuple<int, int, std::uint64_t>, Loan> loans_
      ABSL_GUARDED_BY(mutex_);
  // Whether an end has given up its link, by process and peer.
  std::vector<bool> given_up_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm

#endif  // COMM_SIM_SIM_LINK_H_
