// Sends and receives of a local group that are not complete: each rank's
// mailbox, and the matched pairs that wait for the sender's `after`.
//
//   Messages messages(/*size=*/2);
//   std::optional<Delivery> delivery = messages.mailbox(1).Offer(offer);
//   if (delivery) messages.Hold(1, *delivery);     // `after` is not ready
//   delivery = messages.Release(offer.id);         // once it is
//
// Threads: any. Plain data under locks; GroupState (group_state.h) decides when
// a copy may be made.

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

  // Returns the mailbox of rank `to`.
  Mailbox& mailbox(int to) { return mailboxes_[to]; }

  // Stores a delivery to rank `to` under the id of its offer, which is unique.
  void Hold(int to, Delivery delivery);
  // Removes and returns the delivery under this id; none if it was released or
  // closed.
  std::optional<Delivery> Release(std::uint64_t id);

  // Completes the events of all messages here, and of later ones, with
  // `status`.
  void Close(const absl::Status& status);

  // Returns whether rank `rank` has started a message that waits for `peer`,
  // which may be kAnySource.
  bool Waits(int rank, int peer) const;
  // Returns the incomplete messages of rank `rank`.
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
  // Ordered, so that an abort ends them in a defined order.
  std::map<std::uint64_t, Held> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_MESSAGES_H_
