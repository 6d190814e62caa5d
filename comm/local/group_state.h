// What the ranks of a local group share: a ring of operations, one for each
// collective in flight, that ranks join, work on and finish without locks.
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
// Words: an *operation* is the collective number `seq` of the group. A rank
// *joins* it by Start() or RunInline() and *arms* its part when what it waits
// for is done. When all ranks have armed, the operation is *runnable*: threads
// claim its chunks. The thread that does the last one *finishes* it.
//
// Each rank owns a *slot* of the operation, a cache line: its range and the
// claim word of the block of chunks that it begins with; other ranks claim
// there when theirs are gone. The line of the operation itself is written once
// for each rank that arms and once for each block that is done.
//
// Nobody waits for a rank that works, except Abort(): a thread touches ranges
// and slots only between Enter() and Leave(), and Abort() lets nobody enter and
// waits until all have left. What is between them never blocks; it includes a
// user's ReplicaUpdate::Apply(), which must not either.
//
// The ring is reused: a claim word carries the generation of its operation, so
// a thread that looked at an old one cannot claim in a new one. All other
// fields of a slot are written by its rank before it arms, and read by those
// who have seen the operation runnable, until it is finished.

#ifndef COMM_LOCAL_GROUP_STATE_H_
#define COMM_LOCAL_GROUP_STATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "comm/local/local_group.h"
#include "comm/local/signature.h"
#include "comm/local/wakeup.h"

namespace troupe::comm::internal {

class GroupState {
 public:
  // What is to be done after Leave(), since it runs code of others.
  struct Effects {
    absl::InlinedVector<Event, 8> finished;
    bool wake = false;
    // Aborts the group, where not ok.
    absl::Status failure;

    bool any() const { return wake || !finished.empty() || !failure.ok(); }
  };

  explicit GroupState(const LocalGroupOptions& options);

  int size() const { return size_; }
  std::uint64_t in_flight_max() const { return in_flight_max_; }

  // False, and nothing entered, once the group is aborted.
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

  // The next five only between Enter() and Leave().

  // `seq` counts a rank's collectives from 0; the one in_flight_max before it
  // is finished.
  void Join(int rank, std::uint64_t seq, const Collective& collective,
            const Event& event, bool with_event);
  void Arm(int rank, std::uint64_t seq, bool with_event, Effects* effects);
  bool runnable(std::uint64_t seq) const {
    return static_cast<std::uint32_t>(operation(seq).armed.load(
               std::memory_order_acquire)) == static_cast<std::uint32_t>(size_);
  }
  // One chunk of a runnable operation; false when none is left to claim, and
  // where there is a failure in `effects`, before or now.
  bool WorkOn(int rank, std::uint64_t seq, Effects* effects);
  // Says so in `effects` when a rank that has joined `seq` joined another one
  // than `rank`. Early notice only: the last to arm finds it in any case.
  void CompareWithPeers(int rank, std::uint64_t seq, Effects* effects) const;

  bool finished(std::uint64_t seq) const {
    return operation(seq).finished.load(std::memory_order_acquire) == seq + 1;
  }
  // Changes whenever an operation that some rank awaits by an event becomes
  // runnable.
  std::uint64_t runnable_version() const { return runnable_version_.load(); }
  // The next runnable operation is to wake `rank`.
  void SetIdle(int rank) { ranks_[rank].idle.store(true); }

  void Apply(Effects* effects);
  // Arm() of a thread that drives no rank, when `after` came to `status`.
  void ArmLater(int rank, std::uint64_t seq, const absl::Status& after);
  void Abort(absl::Status status);
  // Waits for the Abort() that is going on to let go of all ranges.
  absl::Status AwaitAbort() const;
  absl::Status abort_status() const;

  void SetWakeup(int rank, std::function<void()> wakeup);
  // `rank` is gone after `joined` collectives, all finished.
  void Depart(int rank, std::uint64_t joined);

  // "all_reduce(sum, f32 x 4), collective 7 of the group: not started by ranks
  // 1, 3; ..."
  std::string DescribeWait(int rank, std::uint64_t seq) const;

 private:
  enum class Phase { kAlive, kAborting, kAborted };

  struct alignas(64) Slot {
    // Generation << 40 | chunks of this block << 20 | next of them to claim.
    std::atomic<std::uint64_t> claim{0};
    std::atomic<std::uint32_t> chunks_done{0};
    // 2 * (seq + 1) once joined, one more once armed.
    std::atomic<std::uint64_t> stage{0};
    std::atomic<std::uint64_t> signature{0};
    char* range = nullptr;
    ReplicaUpdate* update = nullptr;
    Event event;
  };
  struct alignas(64) Operation {
    // Ranks that armed; from bit 32, how many of them await an event.
    std::atomic<std::uint64_t> armed{0};
    std::atomic<int> blocks_done{0};
    // seq + 1 of the latest operation here that is finished.
    std::atomic<std::uint64_t> finished{0};
  };
  struct alignas(64) Rank {
    std::atomic<bool> inside{false};
    // Collectives that it joined before it went.
    std::atomic<std::uint64_t> departed_at{kStays};
    alignas(64) std::atomic<bool> idle{true};
    Wakeup wakeup;
    // A chunk's sum, for an update; of the thread that is inside.
    nn::Tensor sum;
  };
  static constexpr std::uint64_t kStays = ~std::uint64_t{0};

  Operation& operation(std::uint64_t seq) const {
    return operations_[seq & (in_flight_max_ - 1)];
  }
  Slot* slots(std::uint64_t seq) const {
    return &slots_[(seq & (in_flight_max_ - 1)) * size_];
  }
  std::uint64_t generation(std::uint64_t seq) const {
    return (seq >> in_flight_log2_) & 0xffffff;
  }

  bool Claim(Slot* slot, std::uint64_t seq, std::uint64_t* chunk,
             std::uint64_t* block_chunks) const;
  struct Piece;  // a chunk of an operation

  absl::Status Compute(int rank, std::uint64_t seq, const Cut& cut,
                       std::uint64_t chunk, char* const* ranges);
  absl::Status UpdateReplicas(int rank, std::uint64_t seq, const Piece& piece,
                              absl::Span<const void* const> sources);
  absl::Status CompareReplicas(int rank, std::uint64_t seq) const;
  // False where a rank's signature is another than that of `rank`.
  bool Agree(int rank, std::uint64_t seq, Effects* effects) const;
  void Gather(std::uint64_t seq, char** ranges) const;
  void Finish(std::uint64_t seq, Effects* effects);
  void Wake(bool idle_only);
  absl::Status Mismatch(std::uint64_t seq, int a, int b) const;
  absl::Status Departed(std::uint64_t seq) const;

  const int size_;
  const std::size_t chunk_bytes_;
  const std::uint64_t in_flight_max_;
  const int in_flight_log2_;
  nn::CachingAllocator allocator_;
  const std::unique_ptr<Operation[]> operations_;
  const std::unique_ptr<Slot[]> slots_;  // [in_flight_max, size]
  const std::unique_ptr<Rank[]> ranks_;

  // Read by all, seldom written.
  alignas(64) std::atomic<Phase> phase_{Phase::kAlive};
  // The least departed_at of all ranks.
  std::atomic<std::uint64_t> departed_first_{kStays};
  // Threads in ArmLater().
  alignas(64) std::atomic<int> others_inside_{0};
  alignas(64) std::atomic<std::uint64_t> runnable_version_{0};
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_GROUP_STATE_H_
