// One direction of a connection between two nodes of a simulated network: a
// queue of messages under way, which arrive in the order in which they were
// sent, as over TCP (simulated_network.h).
//
//   SimulatedChannel channel(system.next_actor_id(), scheduler, ends);
//   channel.Push(std::move(item), /*delay=*/absl::Milliseconds(3));
//   channel.Cut();                              // holds messages back
//   channel.Heal();                             // they go on
//   channel.Close(reason, /*drop=*/false);      // the last item: the end
//
// No item is delivered before its time, before those sent earlier, or while the
// channel is cut or its receiver is paused. The channel is a task of the
// scheduler, so the seed chooses among the channels whose first item may be
// delivered. A closed channel takes no more items.
//
// Threads: one. Lifetime: shorter than the scheduler's.

#ifndef ACTORS_SIM_SIMULATED_CHANNEL_H_
#define ACTORS_SIM_SIMULATED_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "actors/caf/caf.h"
#include "actors/sim/seeded_scheduler.h"

namespace troupe::actors {

class SimulatedChannel : public SeededScheduler::Task {
 public:
  // A message and its receiver. If `message` is null, the item is the end of
  // the actor `ended`, or without one, the end of the connection; `reason` is
  // the reason of either.
  struct Item {
    caf::mailbox_element_ptr message;
    caf::strong_actor_ptr to;
    std::optional<std::uint64_t> ended;
    caf::error reason;
  };
  // The calls that a channel makes.
  struct Ends {
    // Whether the receiver takes items now. Wake() is called when this changes
    // to true.
    std::function<bool()> may_deliver;
    std::function<void(Item item)> deliver;
    // Arranges a call of Wake() after `time`.
    std::function<void(absl::Duration time)> wake_in;
  };

  // `id`: a number that no actor has.
  SimulatedChannel(std::uint64_t id, SeededScheduler& scheduler, Ends ends)
      : Task(id), scheduler_(scheduler), ends_(std::move(ends)) {}

  // Sends an item, which arrives after `delay`, or later.
  void Push(Item item, absl::Duration delay);
  // Holds items back until as many calls of Heal().
  void Cut() { ++cuts_; }
  void Heal();
  // Ends the connection, after the items under way, or if `drop`, without them.
  void Close(caf::error reason, bool drop);
  // Loses the items under way, and closes the channel without an end.
  void Drop();
  bool closed() const { return closed_; }

  // Enqueues the task if an item can be delivered now.
  void Wake();

  // Delivers the first item. Called by the scheduler.
  resume_result resume(caf::execution_unit*, std::size_t) override;

 private:
  struct UnderWay {
    caf::actor_clock::time_point due;
    Item item;
  };

  bool IsReady() const;

  SeededScheduler& scheduler_;
  const Ends ends_;
  std::deque<UnderWay> items_;
  int cuts_ = 0;
  bool queued_ = false, closed_ = false;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_SIMULATED_CHANNEL_H_
