// Compares the collectives that the ranks of an NCCL group in one process
// start: NCCL itself does not notice a difference, and waits for ever.
//
//   TROUPE_ASSIGN_OR_RETURN(const std::uint64_t number,
//                           ranks.Admit(/*rank=*/0, Pack(collective)));
//   ranks.Missing(/*rank=*/0, number);            // have not started it
//
// Ranks of other processes compare their collectives through the device
// (start_words.h).
//
// Threads: any.

#ifndef COMM_NCCL_LOCAL_RANKS_H_
#define COMM_NCCL_LOCAL_RANKS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace troupe::comm::internal {

class LocalRanks {
 public:
  // `local`: indices in a group of `size`.
  LocalRanks(int size, std::vector<int> local, int in_flight_max);

  // Returns the number of the collective that `rank` starts, equal on all
  // ranks.
  //   kResourceExhausted: it is in_flight_max ahead of another rank.
  //   kFailedPrecondition: another rank started something else.
  //   kUnavailable: another rank, which it needs, has left.
  absl::StatusOr<std::uint64_t> Admit(int rank, std::uint64_t signature)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the ranks but `rank` that have not started number `collective`, as
  // far as this process can tell: all ranks of other processes are included.
  std::vector<int> Missing(int rank, std::uint64_t collective) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns text for the error of `rank` after a wait that was too long:
  // "waited 5m for the other ranks; rank 1 has not started it, as far as this
  // process knows".
  std::string LateText(int rank, std::uint64_t collective,
                       absl::Duration waited) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that `rank` has left. Returns true if others have started a
  // collective that it has not.
  bool Leave(int rank) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Started {
    std::uint64_t signature = 0;
    int first = 0;  // first rank that started it
    int count = 0;  // number of ranks that started it
  };
  struct Rank {
    bool local = false;
    bool gone = false;
    std::uint64_t next = 0;  // number of the next collective
  };

  const int count_;  // number of local ranks
  const std::uint64_t in_flight_max_;
  mutable absl::Mutex mutex_;
  std::vector<Rank> ranks_ ABSL_GUARDED_BY(mutex_);
  // Collectives that not all have started, the first being number first_.
  std::deque<Started> started_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_LOCAL_RANKS_H_
