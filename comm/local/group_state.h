// State that the ranks of a local group share: collectives that they join, work
// on and finish without locks, and how the group ends.
//
//   GroupState::Effects effects;
//   if (!state.Enter(rank)) return state.abort_status();
//   state.Join(rank, seq, collective, event, /*with_event=*/true);
//   state.Arm(rank, seq, /*with_event=*/true, &effects);
//   while (state.WorkOn(rank, seq, &effects)) {
//   }
//   state.Leave(rank);
//   state.Apply(&effects);              // callbacks and wakeups: outside
//
// Terms: an *operation* is collective number `seq` of the group. A rank *joins*
// it by Start() or RunInline() and *arms* its part when its `after` is ready.
// When all ranks have armed, the operation is *runnable*: threads claim its
// chunks (OperationRing) and process them (GroupWork), first those of their own
// rank's share, then those of others. The thread that completes the last one
// *finishes* it.
//
// No rank waits for a rank that works, except Abort(): a thread touches ranges
// and slots only between Enter() and Leave(), and Abort() lets no thread enter
// and waits until all have left. Code between them never blocks; that includes
// a user's ReplicaUpdate::Apply(), which must not block either.

#ifndef COMM_LOCAL_GROUP_STATE_H_
#define COMM_LOCAL_GROUP_STATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "comm/local/group_waits.h"
#include "comm/local/group_work.h"
#include "comm/local/local_group.h"
#include "comm/local/messages.h"
#include "comm/local/operation_ring.h"
#include "comm/local/wakeup.h"

namespace troupe::comm::internal {

class GroupState {
 public:
  // Actions to take after Leave(), since they run callbacks.
  struct Effects {
    absl::InlinedVector<Event, 8> finished;
    bool wake = false;
    // If not ok, the group is aborted with it.
    absl::Status failure;

    bool any() const { return wake || !finished.empty() || !failure.ok(); }
  };

  explicit GroupState(const LocalGroupOptions& options);

  int size() const { return ring_.size(); }
  std::uint64_t in_flight_max() const { return ring_.in_flight_max(); }

  // Returns false, without entering, once the group is aborted.
  bool Enter(int rank) {
    ranks_[rank].inside.store(true);
    if (!aborted()) return true;
    Leave(rank);
    return false;
  }
  void Leave(int rank) {
    ranks_[rank].inside.store(false, std::memory_order_release);
  }
  bool aborted() const { return phase_.load() != Phase::kAlive; }

  // The next six may be called only between Enter() and Leave().

  // `seq` counts a rank's collectives from 0; requires that the one
  // in_flight_max before it is finished.
  void Join(int rank, std::uint64_t seq, const Collective& collective,
            const Event& event, bool with_event);
  void Arm(int rank, std::uint64_t seq, bool with_event, Effects* effects);
  bool runnable(std::uint64_t seq) const { return ring_.runnable(seq); }
  // Processes one chunk of a runnable operation. Returns false if none is left
  // to claim, or `effects` contains a failure, from before or from this call.
  bool WorkOn(int rank, std::uint64_t seq, Effects* effects);
  // Sets the failure in `effects` if a rank that has joined `seq` started
  // another collective than `rank` did. Early detection only: the last rank to
  // arm finds it in any case.
  void CompareWithPeers(int rank, std::uint64_t seq, Effects* effects) const;
  // Copies a message to rank `to`; later, if the sender's `after` is not ready.
  void Deliver(int to, Delivery delivery, Effects* effects);

  bool finished(std::uint64_t seq) const { return ring_.finished(seq); }
  // Counter that changes whenever an operation that some rank awaits by an
  // event becomes runnable.
  std::uint64_t runnable_version() const { return runnable_version_.load(); }
  // Requests that the next runnable operation wakes `rank`.
  void SetIdle(int rank) { ranks_[rank].idle.store(true); }

  void Apply(Effects* effects);
  // Arm() for a thread that drives no rank; `after` is the status of the rank's
  // `after`.
  void ArmLater(int rank, std::uint64_t seq, const absl::Status& after);
  // Deliver() for such a thread: `after` is the status of the event before
  // offer `id` of rank `rank`; errors call the offer `what`.
  void DeliverLater(int rank, std::uint64_t id, const std::string& what,
                    const absl::Status& after);
  void Abort(absl::Status status);
  // Waits until the Abort() in progress has released all ranges.
  absl::Status AwaitAbort() const;
  absl::Status abort_status() const;

  void SetWakeup(int rank, std::function<void()> wakeup);
  // Records that `rank` leaves after `joined` collectives, all finished.
  void Depart(int rank, std::uint64_t joined);
  // Returns kUnavailable if a message that `waiting` posted for, or offered to,
  // `peer` (which may be kAnySource) can never complete since its peers have
  // left.
  absl::Status CheckPeerIsThere(int waiting, int peer) const;

  Messages& messages() { return messages_; }

  // Waits() returns what rank `rank` waits for, or waited for when the group
  // was aborted; any thread. SetSince() sets the time since when it waits for
  // collective `seq`, which it has joined or will join. For a collective
  // without that time, Waits() reports the current time.
  std::vector<Waiting> Waits(int rank) const;
  void SetSince(int rank, std::uint64_t seq) { ring_.SetSince(rank, seq); }

  // Returns "all_reduce(sum, f32 x 4), collective 7 of the group: not started
  // by ranks 1, 3; ...".
  std::string DescribeWait(int rank, std::uint64_t seq) const {
    return internal::DescribeWait(ring_, rank, seq);
  }

 private:
  enum class Phase { kAlive, kAborting, kAborted };

  struct alignas(64) Rank {
    std::atomic<bool> inside{false};
    // Number of collectives that it joined before it left.
    std::atomic<std::uint64_t> departed_at{kStays};
    alignas(64) std::atomic<bool> idle{true};
    Wakeup wakeup;
  };
  static constexpr std::uint64_t kStays = ~std::uint64_t{0};

  // Returns the number of shares of an unfinished operation by counts.
  int SharesByCounts(std::uint64_t seq) const;
  // Records that one of `shares` has ended.
  void ShareDone(std::uint64_t seq, int shares, Effects* effects);
  // Returns false if a rank's signature differs from that of `rank`.
  bool Agree(int rank, std::uint64_t seq, Effects* effects) const;
  void Wake(bool idle_only);
  absl::Status Departed(std::uint64_t seq) const;

  OperationRing ring_;
  GroupWork work_;
  const std::unique_ptr<Rank[]> ranks_;

  // Read by all threads, seldom written.
  alignas(64) std::atomic<Phase> phase_{Phase::kAlive};
  // The smallest departed_at of all ranks.
  std::atomic<std::uint64_t> departed_first_{kStays};
  // Number of threads in ArmLater() and DeliverLater().
  alignas(64) std::atomic<int> others_inside_{0};
  alignas(64) std::atomic<std::uint64_t> runnable_version_{0};
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Messages messages_;
  // Indexed by rank; written before `phase_` is kAborted, and constant from
  // then on.
  std::vector<std::vector<Waiting>> waits_at_abort_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_GROUP_STATE_H_
