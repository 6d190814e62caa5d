// Queue of the collectives that have pieces to send, by urgency: which piece of
// which collective a process sends next.
//
//   queue.Add(op);
//   int piece;
//   while (const auto next = queue.TakeNext(&piece)) SendParts(next, piece);
//   queue.EndSend();                    // the parts of a piece were sent
//
// The number of pieces that are being sent is limited, so that an urgent
// collective (Collective::priority) waits for a few pieces only.
//
// Not thread-safe: used under the group's lock.

#ifndef COMM_SPANNING_SEND_QUEUE_H_
#define COMM_SPANNING_SEND_QUEUE_H_

#include <cstdint>
#include <map>
#include <utility>

#include "comm/spanning/operation/operation.h"

namespace troupe::comm::internal {

class SendQueue {
 public:
  // Adds a collective that has begun, with pieces to send.
  void Add(const OpPtr& op) { queue_[UrgencyOf(*op)] = op; }
  // Returns the most urgent collective whose next piece may be sent now, and
  // that piece; null if there is none, or too many pieces are being sent.
  OpPtr TakeNext(int* piece);
  // Records that a piece which was taken has been sent.
  void EndSend() { --sending_; }
  bool empty() const { return queue_.empty(); }
  void Clear() { queue_.clear(); }

 private:
  using Urgency = std::pair<int, std::uint64_t>;

  static Urgency UrgencyOf(const Operation& op) {
    return {-op.first().priority, op.seq};
  }

  std::map<Urgency, OpPtr> queue_;  // most urgent first
  int sending_ = 0;  // number of pieces that were taken and are not sent yet
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_SEND_QUEUE_H_
