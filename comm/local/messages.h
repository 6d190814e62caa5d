// Sends and receives of a local group that are not done yet: each rank's
// mailbox, and what has been brought together but waits for its sender's
// `after`.
//
//   Messages messages(/*size=*/2);
//   std::optional<Delivery> delivery = messages.mailbox(1).Offer(offer);
//   if (delivery) messages.Hold(1, *delivery);     // `after` is not ready
//   delivery = messages.Release(offer.id);         // now it is: once
//
// Threads: any. Plain data under locks; GroupState (group_state.h) knows when a
// copy may be made.

#ifndef COMM_LOCAL_MESSAGES_H_
#define COMM_LOCAL_MESSAGES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "comm/mailbox.h"
#include "comm/pending_messages.h"

namespace troupe::comm::internal {

class Messages {
 public:
  explicit Messages(int size);

  // Where rank `to` receives.
  Mailbox& mailbox(int to) { return mailboxes_[to]; }

  // Keeps what goes to rank `to` by the id of its offer, which no other has.
  void Hold(int to, Delivery delivery);
  // What is held by this id; nothing where it was released or closed.
  std::optional<Delivery> Release(std::uint64_t id);

  // Completes the events of all that is here, or comes later, with `status`.
  void Close(const absl::Status& status);

  // Whether rank `rank` has started something that waits for `peer`, perhaps
  // kAnySource.
  bool Waits(int rank, int peer) const;
  // What rank `rank` has started and is not done.
  PendingMessages& pending(int rank) const { return pending_[rank]; }

 private:
  struct Held {
    int to;
    Delivery delivery;
  };

  const int size_;
  const std::unique_ptr<Mailbox[]> mailboxes_;
  const std::unique_ptr<PendingMessages[]> pending_;
  mutable absl::Mutex mutex_;
  // In one order, so that an abort ends them in one.
  std::map<std::uint64_t, Held> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_MESSAGES_H_
