// Matches the sends to one rank with its receives: by source and tag, in the
// order in which they arrived (MPI's message matching).
//
//   Mailbox mailbox;                                        // of the receiver
//   std::optional<Delivery> now = mailbox.Post(receive);    // StartRecv()
//   std::optional<Delivery> then = mailbox.Offer(offer);    // a send has come
//   // The caller that gets a delivery carries it out, completes both events.
//
// A receive takes the oldest offer that matches, and an offer the oldest
// receive that matches: so two messages of one source and tag never overtake
// each other. The mailbox moves no data and does not depend on the transport:
// the local group offers the sender's memory itself, the spanning group the
// description in a frame.
//
// Threads: any. Events are completed with no lock held.

#ifndef COMM_MAILBOX_H_
#define COMM_MAILBOX_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "comm/communicator.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::internal {

// Returns "send(to 1, tag 5, f32 x 8)".
std::string SendText(int to, std::uint32_t tag, nn::DType dtype,
                     std::int64_t count);
// Returns "recv(from 0, tag 5, f32 x 8)", "recv(from any, ...)".
std::string ReceiveText(int from, std::uint32_t tag, nn::DType dtype,
                        std::int64_t count);

// A receive that was started by StartRecv().
struct Receive {
  int source = kAnySource;
  std::uint32_t tag = 0;
  nn::Tensor into;
  Arrival* arrival = nullptr;
  Event done;

  std::string ToString() const;
};

// A send that was started by StartSend(), as the receiver sees it.
struct Offer {
  int source = 0;
  std::uint32_t tag = 0;
  nn::DType dtype = nn::DType::kF32;
  std::int64_t count = 0;  // number of elements
  // Data to send, if it lies in this process; undefined if the receiver must
  // request it.
  nn::Tensor data;
  // Identifier of the message for the transport.
  std::uint64_t id = 0;
  // Events: `data` may be read after `after`, and is not needed once `done` is
  // complete. Both are ready from the beginning if the transport has copied it.
  Event after, done;
  // Whether the receiver gets `data` itself (Communicator::HandsOver()).
  bool handed_over = false;

  std::string ToString(int to) const;
};

// A matched pair of receive and offer.
struct Delivery {
  Receive receive;
  Offer offer;

  // Returns kInvalidArgument if the offer is longer than the receive's buffer,
  // or of another dtype; names both. `to` is the receiving rank.
  absl::Status Check(int to) const;
  // Copies offer.data, or hands it over, and fills the receive's arrival.
  // Requires that Check() has passed.
  void Copy() const;
};

class Mailbox {
 public:
  // Return the match, or none if the argument was queued. Once closed, they
  // complete its `done` with the status and return none.
  std::optional<Delivery> Post(Receive receive);
  std::optional<Delivery> Offer(internal::Offer offer);

  // Completes all events in the queues with `status`, and those of later calls.
  void Close(const absl::Status& status);

  // Return, as text, the first receive that names `source`, and the first offer
  // of `source` that no receive has matched. Empty: none.
  std::string FirstReceiveFrom(int source) const;
  std::string FirstOfferOf(int source, int to) const;
  // Returns the first of all receives, as text; empty: none.
  std::string FirstReceive() const;

 private:
  static bool Fit(const Receive& receive, const internal::Offer& offer) {
    return receive.tag == offer.tag &&
           (receive.source == kAnySource || receive.source == offer.source);
  }

  mutable absl::Mutex mutex_;
  std::deque<Receive> receives_ ABSL_GUARDED_BY(mutex_);
  std::deque<internal::Offer> offers_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // not ok: closed
};

}  // namespace troupe::comm::internal

#endif  // COMM_MAILBOX_H_
