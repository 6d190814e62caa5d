// The sends and receives that one rank has started and that are not complete.
//
//   PendingMessages pending;                        // of rank 0
//   pending.Add(Pending(receive));                  // StartRecv()
//   pending.Add(Pending(offer, /*to=*/1));          // StartSend()
//   pending.First();                                // "recv(from 1, ...)"
//   std::vector<Waiting> waits = pending.Waits(/*rank=*/0, /*size=*/2);
//
// A message whose event is ready is removed by a later Add(), and is skipped by
// First() and Waits() before that. Threads: any.

#ifndef COMM_PENDING_MESSAGES_H_
#define COMM_PENDING_MESSAGES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "comm/communicator.h"
#include "comm/mailbox.h"

namespace troupe::comm::internal {

struct Pending {
  explicit Pending(const Receive& receive);
  Pending(const Offer& offer, int to);

  // Returns the text of the Receive or the Offer.
  std::string ToString() const;

  bool sends = false;
  int peer = kAnySource;
  std::uint32_t tag = 0;
  nn::DType dtype = nn::DType::kF32;
  std::int64_t count = 0;
  Event done;
  std::chrono::steady_clock::time_point since;
};

class PendingMessages {
 public:
  void Add(Pending message);
  // Returns the oldest, as text; empty: none.
  std::string First() const;
  // Returns what rank `rank` of a group of `size` waits for.
  std::vector<Waiting> Waits(int rank, int size) const;

 private:
  mutable absl::Mutex mutex_;
  std::vector<Pending> messages_ ABSL_GUARDED_BY(mutex_);
  // Number of messages at which Add() removes the completed ones.
  std::size_t look_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

}  // namespace troupe::comm::internal

#endif  // COMM_PENDING_MESSAGES_H_
