// The collectives that one rank of an NCCL group has started, and whose work is
// not complete.
//
//   PendingCollectives pending;
//   const Event done = pending.Add(/*number=*/7, {collective}, now).done;
//   if (now >= pending.oldest().since + timeout) Fail(pending.oldest().what);
//   pending.Remove(7);                            // its work is complete
//
// Threads: one at a time.

#ifndef COMM_NCCL_PENDING_COLLECTIVES_H_
#define COMM_NCCL_PENDING_COLLECTIVES_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "comm/nccl/local_ranks.h"

namespace troupe::comm::internal {

// A collective, or several that start together.
struct PendingCollective {
  // Number of the first collective, equal on all ranks.
  std::uint64_t number = 0;
  // Text for errors: "all_reduce(sum, f32 x 8), collective 7 of the group".
  std::string what;
  Event done;
  // Time when it was started: by the clock of the group's timeout, and for
  // Waiting.
  absl::Time since;
  std::chrono::steady_clock::time_point started;
};

class PendingCollectives {
 public:
  // Adds `collectives`, which start now; `number` is that of the first, and
  // higher than all that were added before.
  const PendingCollective& Add(std::uint64_t number,
                               absl::Span<const Collective> collectives,
                               absl::Time now);
  void Remove(std::uint64_t number);
  // Removes all, to complete their events.
  std::deque<PendingCollective> TakeAll();

  bool empty() const { return all_.empty(); }
  const PendingCollective& oldest() const { return all_.front(); }
  // Returns the one that starts with `number`, or null.
  const PendingCollective* Find(std::uint64_t number) const;
  // Returns what rank `rank` waits for, the oldest first. `certain`: all ranks
  // of the group are in `ranks`.
  std::vector<Waiting> Waits(const LocalRanks& ranks, int rank,
                             bool certain) const;

 private:
  // Sorted by number.
  std::deque<PendingCollective> all_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_PENDING_COLLECTIVES_H_
