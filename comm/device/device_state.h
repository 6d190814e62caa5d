// State that the ranks of a device group (device_group.h) share: the
// collectives that some of them have started and others have not.
//
//   auto joined = state.Join(rank, collective, after);
//   if (joined->meeting) {                            // this rank was the last
//     status = Carry(*joined->meeting, work);
//   }
//   return joined->done;
//
// Threads: any. No lock is held while events complete or work is enqueued on
// devices.

#ifndef COMM_DEVICE_DEVICE_STATE_H_
#define COMM_DEVICE_DEVICE_STATE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "comm/communicator.h"
#include "comm/device/device_work.h"
#include "comm/local/local_group.h"

namespace troupe::comm::internal {

// One collective with the arguments of its ranks.
struct Meeting {
  struct Rank {
    bool here = false;
    Collective collective;
    Event after;
    std::chrono::steady_clock::time_point since;
  };

  std::vector<Rank> ranks;
  int come = 0;
  std::uint64_t signature = 0;  // signature of the first rank to start
  int first = 0;                // first rank to start
  Event done = Event::Make();
};

class DeviceState {
 public:
  struct Joined {
    Event done;
    // The complete collective, if the caller is the last rank; otherwise null.
    std::unique_ptr<Meeting> meeting;
  };

  explicit DeviceState(const LocalGroupOptions& options);

  int size() const { return size_; }

  //   kResourceExhausted: the rank is in_flight_max ahead of a peer.
  //   kFailedPrecondition: the ranks started different ones; aborts the group.
  //   kUnavailable: a peer has left the group; aborts it.
  absl::StatusOr<Joined> Join(int rank, const Collective& collective,
                              Event after) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that `done` has an origin, or is about to: Abort() waits for it.
  void NoteLaunched(const Event& done) ABSL_LOCKS_EXCLUDED(mutex_);
  void Abort(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that `rank` has left the group.
  void Leave(int rank) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Waiting> Waits(int rank) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Admit(int rank, std::uint64_t signature) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Waiting> WaitsNow(int rank) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns collective number `seq` of the group, which is in pending_.
  Meeting& At(std::uint64_t seq) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return *pending_[seq - first_];
  }

  const int size_;
  const std::uint64_t in_flight_max_;
  mutable absl::Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  // Collectives that not all ranks have started, the first being number first_.
  std::deque<std::unique_ptr<Meeting>> pending_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::uint64_t> next_ ABSL_GUARDED_BY(mutex_);  // index: rank
  std::vector<bool> gone_ ABSL_GUARDED_BY(mutex_);           // index: rank
  // Results of collectives on devices, perhaps not complete.
  std::deque<Event> launched_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<Waiting>> waits_at_abort_ ABSL_GUARDED_BY(mutex_);
};

// Enqueues the blocks of a collective (flow.h) on `work`.
absl::Status Carry(const Meeting& meeting, DeviceWork& work);

}  // namespace troupe::comm::internal

#endif  // COMM_DEVICE_DEVICE_STATE_H_
