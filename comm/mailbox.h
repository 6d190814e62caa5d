// Brings the sends to one rank and its receives together: by source and tag,
// each in the order in which they came.
//
//   Mailbox mailbox;                                        // of the receiver
//   std::optional<Delivery> now = mailbox.Post(receive);    // StartRecv()
//   std::optional<Delivery> then = mailbox.Offer(offer);    // a send has come
//   // Who is handed a delivery carries it out, and completes both events.
//
// A receive takes the oldest offer that fits; an offer goes to the oldest
// receive that fits: so two of one source and tag never overtake each other.
// It moves no data and knows no transport: the local group offers the sender's
// memory itself, the spanning group what a frame said of it.
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

// "send(to 1, tag 5, f32 x 8)".
std::string SendText(int to, std::uint32_t tag, nn::DType dtype,
                     std::int64_t count);
// "recv(from 0, tag 5, f32 x 8)", "recv(from any, ...)".
std::string ReceiveText(int from, std::uint32_t tag, nn::DType dtype,
                        std::int64_t count);

// A StartRecv().
struct Receive {
  int source = kAnySource;
  std::uint32_t tag = 0;
  nn::Tensor into;
  Arrival* arrival = nullptr;
  Event done;

  std::string ToString() const;
};

// A StartSend(), as the receiver's side knows it.
struct Offer {
  int source = 0;
  std::uint32_t tag = 0;
  nn::DType dtype = nn::DType::kF32;
  std::int64_t count = 0;  // elements
  // What is sent, where it is here; undefined where it is to be asked for.
  nn::Tensor data;
  // What the transport knows it by.
  std::uint64_t id = 0;
  // Before `data` may be read, and when it is not needed any more. Both ready
  // from the beginning where the transport has copied it.
  Event after, done;

  std::string ToString(int to) const;
};

// A receive and an offer that belong together.
struct Delivery {
  Receive receive;
  Offer offer;

  // kInvalidArgument where the offer is longer than the receive's buffer, or of
  // another dtype; names both. `to` is the receiving rank.
  absl::Status Check(int to) const;
  // Copies offer.data, and says so in the receive's arrival. For a delivery
  // that passed Check().
  void Copy() const;
};

class Mailbox {
 public:
  // Nothing: it was kept. Once closed, completes the event(s) at once instead.
  std::optional<Delivery> Post(Receive receive);
  std::optional<Delivery> Offer(internal::Offer offer);

  // Completes all events that it holds with `status`, and those that come
  // later.
  void Close(const absl::Status& status);

  // What waits here for an act of rank `source`: a receive from it, where it
  // names it. And what `source` has offered that nobody has asked for. The
  // first, as text; empty: none.
  std::string FirstReceiveFrom(int source) const;
  std::string FirstOfferOf(int source, int to) const;
  // The first of all receives.
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
