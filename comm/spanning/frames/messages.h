// Sends and receives of the ranks of a spanning group in this process: between
// two of them by a copy, to and from other processes by the courier.
//
//   SpanningMessages messages(board, courier, group, &layout);
//   messages.Send(rank, to, tag, data, after, done);
//   messages.Receive(rank, {from, tag, into, arrival, done});
//
// A message that has no receive yet waits at the receiver's mailbox: a small
// payload with it (bounded), a large one at the sender.
//
// Threads: any.

#ifndef COMM_SPANNING_FRAMES_MESSAGES_H_
#define COMM_SPANNING_FRAMES_MESSAGES_H_

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
#include "comm/spanning/frames/courier.h"
#include "comm/spanning/plan/layout.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::comm::internal {

class SpanningMessages {
 public:
  // Ends the group; not called under a lock of this class.
  using Fail = std::function<void(const absl::Status&)>;

  SpanningMessages(Switchboard* board, std::shared_ptr<Courier> courier,
                   std::uint32_t group, const GroupLayout* layout);
  // Sets the pointer that keeps this object alive, and the function that ends
  // the group; called before anything else.
  void SetOwner(std::weak_ptr<SpanningMessages> self, Fail fail) {
    self_ = std::move(self);
    fail_ = std::move(fail);
  }

  void Send(int from, int to, std::uint32_t tag, const nn::Tensor& data,
            const Event& after, const Event& done);
  void Receive(int rank, internal::Receive receive);
  // Handles a frame kOffer of the group.
  absl::Status Take(int peer, const Frame& frame, const char* payload);
  void Close(const absl::Status& why);
  // Returns the peers whose links use memory of sends and receives. If there
  // are none and it is closed, all events are ready or about to be.
  std::vector<int> Holders() const { return courier_->Holders(group_); }
  bool LetGo() const { return closed_.load() && Holders().empty(); }

  // Returns a receive of a rank here that `rank` will never answer once it has
  // left, since no message of it is in transit: "rank 0's recv(...)"; empty:
  // none.
  std::string FirstThatNeeds(int rank) const;
  // Returns the first receive of any rank here: "rank 0's recv(...)"; empty:
  // none.
  std::string FirstReceive() const;
  // Returns the incomplete messages of rank `rank`, which lives here.
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
  const std::unique_ptr<Mailbox[]> mailboxes_;        // index: place
  const std::unique_ptr<PendingMessages[]> pending_;  // index: place
  std::weak_ptr<SpanningMessages> self_;
  Fail fail_;
  nn::CachingAllocator allocator_;
  // Matched messages between two ranks here that wait for the send's `after`.
  absl::Mutex mutex_;
  std::map<std::uint64_t, Delivery> met_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t next_met_ ABSL_GUARDED_BY(mutex_) = 0;
  // Memory of offers that no receive has matched.
  std::atomic<std::size_t> held_bytes_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_FRAMES_MESSAGES_H_
