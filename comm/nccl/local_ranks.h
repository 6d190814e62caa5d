// What the ranks of an NCCL group that live in one process know of each other:
// NCCL itself does not notice when ranks start different collectives, and waits
// for ever.
//
//   TROUPE_ASSIGN_OR_RETURN(const std::uint64_t number,
//                           ranks.Admit(/*rank=*/0, Pack(collective)));
//   ranks.Missing(/*rank=*/0, number);            // who has not started it
//
// Ranks of other processes compare what they start by way of the device
// (start_words.h).
//
// Threads: any.

#ifndef COMM_NCCL_LOCAL_RANKS_H_
#define COMM_NCCL_LOCAL_RANKS_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace troupe::comm::internal {

class LocalRanks {
 public:
  // `local`: places in a group of `size`.
  LocalRanks(int size, std::vector<int> local, int in_flight_max);

  // The number of the collective that `rank` starts, as all ranks count.
  //   kResourceExhausted: it is in_flight_max ahead of another one.
  //   kFailedPrecondition: another one started something else.
  //   kUnavailable: another one has left, and is needed for it.
  absl::StatusOr<std::uint64_t> Admit(int rank, std::uint64_t signature)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The ranks but `rank` that have not started number `collective`, as far as
  // is known here: all of other processes.
  std::vector<int> Missing(int rank, std::uint64_t collective) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // `rank` is gone. True: others have started what it has not.
  bool Leave(int rank) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Started {
    std::uint64_t signature = 0;
    int first = 0;  // the rank that was
    int count = 0;  // of ranks
  };
  struct Rank {
    bool local = false;
    bool gone = false;
    std::uint64_t next = 0;  // collective to start
  };

  const int count_;  // of local ranks
  const std::uint64_t in_flight_max_;
  mutable absl::Mutex mutex_;
  std::vector<Rank> ranks_ ABSL_GUARDED_BY(mutex_);
  // From number first_ on: what not all have started.
  std::deque<Started> started_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_LOCAL_RANKS_H_
