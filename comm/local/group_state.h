// State that the ranks of a local group share: a ring of operations, one for
// each collective in flight, that ranks join, work on and finish without locks.
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
// chunks. The thread that completes the last one *finishes* it.
//
// Each rank owns a *slot* of the operation, a cache line with its input, its
// range, and the claim word of its share of the chunks. A rank claims chunks of
// its own share first, then those of others. The operation's own cache line is
// written once for each rank that arms and once for each share that is
// complete.
//
// group_state.cc implements that protocol, group_work.cc the work on a chunk,
// group_waits.cc the report of which ranks wait for which.
//
// No rank waits for a rank that works, except Abort(): a thread touches ranges
// and slots only between Enter() and Leave(), and Abort() lets no thread enter
// and waits until all have left. Code between them never blocks; that includes
// a user's ReplicaUpdate::Apply(), which must not block either.
//
// The ring is reused: a claim word contains the generation of its operation, so
// a thread that read an old one cannot claim a chunk of a new one. All other
// fields of a slot are written by its rank before it arms, and read by threads
// that have seen the operation runnable, until it is finished.

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
#include "comm/flow.h"
#include "comm/local/cut.h"
#include "comm/local/local_group.h"
#include "comm/local/messages.h"
#include "comm/local/wakeup.h"
#include "comm/reduction_tree.h"
#include "comm/signature.h"

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

  int size() const { return size_; }
  std::uint64_t in_flight_max() const { return in_flight_max_; }

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
  bool runnable(std::uint64_t seq) const {
    return static_cast<std::uint32_t>(operation(seq).armed.load(
               std::memory_order_acquire)) == static_cast<std::uint32_t>(size_);
  }
  // Processes one chunk of a runnable operation. Returns false if none is left
  // to claim, or `effects` contains a failure, from before or from this call.
  bool WorkOn(int rank, std::uint64_t seq, Effects* effects);
  // Sets the failure in `effects` if a rank that has joined `seq` started
  // another collective than `rank` did. Early detection only: the last rank to
  // arm finds it in any case.
  void CompareWithPeers(int rank, std::uint64_t seq, Effects* effects) const;
  // Copies a message to rank `to`; later, if the sender's `after` is not ready.
  void Deliver(int to, Delivery delivery, Effects* effects);

  bool finished(std::uint64_t seq) const {
    return operation(seq).finished.load(std::memory_order_acquire) == seq + 1;
  }
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
  void SetSince(int rank, std::uint64_t seq);

  // Returns "all_reduce(sum, f32 x 4), collective 7 of the group: not started
  // by ranks 1, 3; ...".
  std::string DescribeWait(int rank, std::uint64_t seq) const;

 private:
  enum class Phase { kAlive, kAborting, kAborted };

  struct alignas(64) Slot {
    // Generation << 40 | chunks of this share << 20 | next one to claim.
    std::atomic<std::uint64_t> claim{0};
    std::atomic<std::uint32_t> chunks_done{0};
    // 2 * (seq + 1) once joined, plus one once armed.
    std::atomic<std::uint64_t> stage{0};
    std::atomic<std::uint64_t> signature{0};
    char* range = nullptr;
    union {
      const char* input = nullptr;  // `range`, if reduced in place
      ReplicaUpdate* update;  // for a reduce_update, whose input is `range`
    };
    Event event;
  };
  static_assert(sizeof(Slot) == 64);
  // Counts of an all_to_all with unequal parts, and the offset of each part.
  struct PairCounts {
    explicit PairCounts(const Collective& collective);
    std::vector<std::int64_t> sent, expected;
    // One more entry than ranks: the last is the end.
    std::vector<std::int64_t> sent_at, expected_at;
  };
  // Kept apart from the slot, since it is seldom used.
  struct Since {
    std::atomic<std::uint64_t> joined{0};  // seq + 1
    std::atomic<std::int64_t> ticks{0};    // steady clock
  };
  struct alignas(64) Operation {
    // Number of ranks that armed; from bit 32, how many of them await an event.
    std::atomic<std::uint64_t> armed{0};
    std::atomic<int> shares_done{0};
    // seq + 1 of the latest finished operation in this place of the ring.
    std::atomic<std::uint64_t> finished{0};
  };
  struct alignas(64) Rank {
    std::atomic<bool> inside{false};
    // Number of collectives that it joined before it left.
    std::atomic<std::uint64_t> departed_at{kStays};
    alignas(64) std::atomic<bool> idle{true};
    Wakeup wakeup;
    // Scratch memory for a chunk's sum, for an update; used by the thread
    // inside.
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

  Since& since(std::uint64_t seq, int rank) const {
    return since_[slots(seq) + rank - slots_.get()];
  }
  const PairCounts& counts(std::uint64_t seq, int rank) const {
    return *counts_[slots(seq) + rank - slots_.get()];
  }

  // Returns how the share of `rank` is cut into chunks.
  Cut CutOf(std::uint64_t seq, int rank, std::uint64_t signature) const;
  // Returns the number of shares of an unfinished operation by counts.
  int SharesByCounts(std::uint64_t seq) const;
  // Records that one of `shares` has ended.
  void ShareDone(std::uint64_t seq, int shares, Effects* effects);
  bool Claim(Slot* slot, std::uint64_t seq, std::uint64_t* chunk,
             std::uint64_t* share_chunks) const;
  // Returns false if a rank's signature differs from that of `rank`.
  bool Agree(int rank, std::uint64_t seq, Effects* effects) const;
  bool PairsAgree(std::uint64_t seq, Effects* effects) const;

  // Part of a chunk that lies in one block of the flow.
  struct Piece {
    Reduction reduction;
    Block block;
  };
  absl::Status Compute(int rank, std::uint64_t seq, const Cut& cut, int share,
                       std::uint64_t chunk);
  // Sets the sources of a reduction, `offset` bytes into each rank's input.
  void Gather(std::uint64_t seq, std::size_t offset, bool update,
              const void** sources) const;
  void Reduce(std::uint64_t seq, const Piece& piece) const;
  void Copy(std::uint64_t seq, const Piece& piece) const;
  absl::Status CopyByCounts(std::uint64_t seq, int from, std::int64_t begin,
                            std::int64_t end) const;
  absl::Status UpdateReplicas(int rank, std::uint64_t seq, const Piece& piece);
  absl::Status CompareReplicas(int rank, std::uint64_t seq) const;

  void Finish(std::uint64_t seq, Effects* effects);
  void Wake(bool idle_only);
  absl::Status Mismatch(std::uint64_t seq, int a, int b) const;
  static absl::Status Differs(std::uint64_t seq, absl::string_view how);
  absl::Status Departed(std::uint64_t seq) const;
  std::vector<Waiting> WaitsNow(int rank) const;

  const int size_;
  const std::size_t chunk_bytes_;
  const std::uint64_t in_flight_max_;
  const int in_flight_log2_;
  nn::CachingAllocator allocator_;
  const std::unique_ptr<Operation[]> operations_;
  const std::unique_ptr<Slot[]> slots_;  // [in_flight_max, size]
  const std::unique_ptr<Since[]> since_;
  // Indexed by slot; set if its collective is an all_to_all by counts.
  const std::unique_ptr<std::unique_ptr<const PairCounts>[]> counts_;
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

// Returns "rank 3" or "ranks 0, 3".
std::string RankText(const std::vector<int>& ranks);

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_GROUP_STATE_H_
