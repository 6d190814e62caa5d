// What the ranks of a device group (device_group.h) share: the collectives that
// some of them have started and others not.
//
//   auto joined = state.Join(rank, collective, after);
//   if (joined->meeting) {                            // this rank was the last
//     status = Carry(*joined->meeting, work);
//   }
//   return joined->done;
//
// Threads: any. No lock is held while events complete or devices are given
// work.

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

// One collective, as its ranks have brought it.
struct Meeting {
  struct Rank {
    bool here = false;
    Collective collective;
    Event after;
    std::chrono::steady_clock::time_point since;
  };

  std::vector<Rank> ranks;
  int come = 0;
  std::uint64_t signature = 0;  // of the first to come
  int first = 0;                // its rank
  Event done = Event::Make();
};

class DeviceState {
 public:
  struct Joined {
    Event done;
    // All have come, and the caller is the last; otherwise null.
    std::unique_ptr<Meeting> meeting;
  };

  explicit DeviceState(const LocalGroupOptions& options);

  int size() const { return size_; }

  //   kResourceExhausted: the rank is in_flight_max ahead of a peer.
  //   kFailedPrecondition: it came with another collective; aborts the group.
  //   kUnavailable: a peer has left the group; aborts it.
  absl::StatusOr<Joined> Join(int rank, const Collective& collective,
                              Event after) ABSL_LOCKS_EXCLUDED(mutex_);
  // `done` is now known, or nearly: Abort() waits for it.
  void NoteLaunched(const Event& done) ABSL_LOCKS_EXCLUDED(mutex_);
  void Abort(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  // `rank` is gone.
  void Leave(int rank) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Waiting> Waits(int rank) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Admit(int rank, std::uint64_t signature) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Waiting> WaitsNow(int rank) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Number `seq` of the group's collectives, which is in pending_.
  Meeting& At(std::uint64_t seq) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return *pending_[seq - first_];
  }

  const int size_;
  const std::uint64_t in_flight_max_;
  mutable absl::Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  // The collectives from number first_ on that not all ranks have started.
  std::deque<std::unique_ptr<Meeting>> pending_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::uint64_t> next_ ABSL_GUARDED_BY(mutex_);  // by rank
  std::vector<bool> gone_ ABSL_GUARDED_BY(mutex_);           // by rank
  // Given to devices, and perhaps not done.
  std::deque<Event> launched_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<Waiting>> waits_at_abort_ ABSL_GUARDED_BY(mutex_);
};

// Gives the blocks of a collective (flow.h) to `work`.
absl::Status Carry(const Meeting& meeting, DeviceWork& work);

}  // namespace troupe::comm::internal

#endif  // COMM_DEVICE_DEVICE_STATE_H_
