// The frames in transit from one simulated process to another: a FIFO channel.
//
//   SimChannel channel(&clock);
//   channel.Push(frame, payload, done, /*copy=*/false);
//   clock.AdvanceTo(channel.due());
//   SimPacket& first = channel.first();
//   if (first.AwaitsPlace()) {
//     first.Place(sink, /*from=*/0);
//     channel.Delay();
//   } else {
//     first.Take(sink, /*from=*/0);
//     channel.Pop();
//   }
//
// A frame with a payload is delivered by two events, Place() and Take() of its
// receiver, with a random delay before each. The payload is read by the last.
//
// Threads: one at a time, except that other threads may push during Place() and
// Take() of the first packet, which stays where it is.

#ifndef COMM_SIM_SIM_CHANNEL_H_
#define COMM_SIM_SIM_CHANNEL_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "comm/link.h"
#include "comm/sim/sim_clock.h"

namespace troupe::comm {

// A frame in transit.
struct SimPacket {
  Frame frame;
  const char* payload = nullptr;  // the sender's, unless `copied`
  std::string copy;
  bool copied = false;
  SendDone* done = nullptr;
  bool placed = false;    // whether Place() was called
  char* place = nullptr;  // its result

  // Returns whether the next event is Place(), not Take().
  bool AwaitsPlace() const { return frame.bytes > 0 && !placed; }
  void Place(FrameSink& sink, int from);
  void Take(FrameSink& sink, int from) const;
  // Copies the payload, so that the sender no longer needs it.
  void OwnPayload();
};

class SimChannel {
 public:
  // The clock outlives the channel.
  explicit SimChannel(SimClock* clock) : clock_(clock) {}

  void Push(const Frame& frame, const char* payload, SendDone* done, bool copy);
  // Returns the time of the first packet's next event; kNever if the channel is
  // empty or held.
  std::uint64_t due() const {
    return held_ || packets_.empty() ? SimClock::kNever : due_;
  }
  bool empty() const { return packets_.empty(); }
  SimPacket& first() { return packets_.front(); }
  // Draws the delay before the next event.
  void Delay() { due_ = clock_->AfterDelay(); }
  // Removes the first packet, and draws the delay before the next.
  void Pop();

  // Delivers nothing while held; the packets wait.
  void SetHeld(bool held);
  // Drops all packets; returns the callbacks of their senders, to be called.
  std::vector<SendDone*> Drop();
  // Makes all packets independent of their sender, which goes away; returns its
  // callbacks, to be called.
  std::vector<SendDone*> Detach();

 private:
  SimClock* clock_;
  std::deque<SimPacket> packets_;
  std::uint64_t due_ = 0;  // time of the first packet's next event
  bool held_ = false;
};

}  // namespace troupe::comm

#endif  // COMM_SIM_SIM_CHANNEL_H_
