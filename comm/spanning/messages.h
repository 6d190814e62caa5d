// Sends and receives of the ranks of a spanning group that live here: between
// two of them by a copy, to and from others by the courier.
//
//   SpanningMessages messages(board, courier, group, &layout);
//   messages.Send(rank, to, tag, data, after, done);
//   messages.Receive(rank, {from, tag, into, arrival, done});
//
// What the receiver has not asked for yet waits at its mailbox: small payloads
// with it (bounded), large ones at the sender.
//
// Threads: any.

#ifndef COMM_SPANNING_MESSAGES_H_
#define COMM_SPANNING_MESSAGES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "comm/mailbox.h"
#include "comm/pending_messages.h"
#include "comm/spanning/courier.h"
#include "comm/spanning/layout.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::comm::internal {

class SpanningState;

class SpanningMessages {
 public:
  // Ends the group; not called under a lock of this.
  using Fail = std::function<void(const absl::Status&)>;

  SpanningMessages(Switchboard* board, std::shared_ptr<Courier> courier,
                   std::uint32_t group, const GroupLayout* layout);
  // Before anything else: the group whose messages these are, and how to end
  // it.
  void SetGroup(std::weak_ptr<SpanningState> group, Fail fail) {
    self_ = std::move(group);
    fail_ = std::move(fail);
  }

  void Send(int from, int to, std::uint32_t tag, const nn::Tensor& data,
            const Event& after, const Event& done);
  void Receive(int rank, internal::Receive receive);
  // A frame kOffer of the group.
  absl::Status Take(int peer, const Frame& frame, const char* payload);
  void Close(const absl::Status& why);
  // Peers whose links use memory of sends and receives; none: once closed, all
  // events are ready or about to be.
  std::vector<int> Holders() const { return courier_->Holders(group_); }
  bool LetGo() const { return closed_.load() && Holders().empty(); }

  // What ranks here wait for that `rank` does not do when it is gone, since
  // nothing of it is on its way: "rank 0's recv(...)"; empty: nothing.
  std::string FirstThatNeeds(int rank) const;
  // "rank 0's recv(...)", of any; empty: none.
  std::string FirstReceive() const;
  // What rank `rank`, which lives here, has started and is not done.
  PendingMessages& pending(int rank) const {
    return pending_[layout_.place_of(rank)];
  }

 private:
  Mailbox& mailbox(int rank) const {
    return mailboxes_[layout_.place_of(rank)];
  }
  void Carry(int to, const Delivery& delivery);
  void CopyAfter(const Delivery& delivery);
  absl::Status CheckOffer(int peer, const Frame& frame,
                          const Courier::Offer& offer) const;

  Switchboard& board_;
  const std::shared_ptr<Courier> courier_;
  const std::uint32_t group_;
  const GroupLayout& layout_;
  const std::unique_ptr<Mailbox[]> mailboxes_;        // by place
  const std::unique_ptr<PendingMessages[]> pending_;  // likewise
  std::weak_ptr<SpanningState> self_;
  Fail fail_;
  nn::CachingAllocator allocator_;
  // What is between two ranks here, and waits for what comes before the send.
  absl::Mutex mutex_;
  std::map<std::uint64_t, Delivery> met_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t next_met_ ABSL_GUARDED_BY(mutex_) = 0;
  // The size of offers that nobody has asked for.
  std::atomic<std::size_t> held_bytes_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_MESSAGES_H_
