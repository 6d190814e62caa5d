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
// Each rank owns a *slot* of the operation, a cache line: its input and range,
// and the claim word of its share of the chunks, with which it begins; other
// ranks claim there when theirs are gone. The line of the operation itself is
// written once for each rank that arms and once for each share that is done.
//
// group_state.cc is that protocol; group_work.cc is what becomes of a chunk;
// group_waits.cc says who waits for whom.
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

  // The next six only between Enter() and Leave().

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
  // Copies what is delivered to rank `to`; later, where the sender's `after` is
  // not ready.
  void Deliver(int to, Delivery delivery, Effects* effects);

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
  // Deliver() of such a thread: `after` of the offer that rank `rank` made as
  // `id`, to be named as `what`, came to `status`.
  void DeliverLater(int rank, std::uint64_t id, const std::string& what,
                    const absl::Status& after);
  void Abort(absl::Status status);
  // Waits for the Abort() that is going on to let go of all ranges.
  absl::Status AwaitAbort() const;
  absl::Status abort_status() const;

  void SetWakeup(int rank, std::function<void()> wakeup);
  // `rank` is gone after `joined` collectives, all finished.
  void Depart(int rank, std::uint64_t joined);
  // kUnavailable where a rank is gone without which what `waiting` posted or
  // offered to `peer` (perhaps kAnySource) will never be done.
  absl::Status CheckPeerIsThere(int waiting, int peer) const;

  Messages& messages() { return messages_; }

  // What rank `rank` waits for, or waited for when the group was aborted, by
  // any thread; and since when, of collective `seq`, which it has or will have
  // joined. Not taken: not long.
  std::vector<Waiting> Waits(int rank) const;
  void SetSince(int rank, std::uint64_t seq);

  // "all_reduce(sum, f32 x 4), collective 7 of the group: not started by ranks
  // 1, 3; ..."
  std::string DescribeWait(int rank, std::uint64_t seq) const;

 private:
  enum class Phase { kAlive, kAborting, kAborted };

  struct alignas(64) Slot {
    // Generation << 40 | chunks of this share << 20 | next of them to claim.
    std::atomic<std::uint64_t> claim{0};
    std::atomic<std::uint32_t> chunks_done{0};
    // 2 * (seq + 1) once joined, one more once armed.
    std::atomic<std::uint64_t> stage{0};
    std::atomic<std::uint64_t> signature{0};
    char* range = nullptr;
    union {
      const char* input = nullptr;  // `range`, where it is reduced in place
      ReplicaUpdate* update;        // of a reduce_update; its input is `range`
    };
    Event event;
  };
  static_assert(sizeof(Slot) == 64);
  // The unequal parts of an all_to_all, with where each begins.
  struct PairCounts {
    explicit PairCounts(const Collective& collective);
    std::vector<std::int64_t> sent, expected;
    // One more than ranks: the last is the end.
    std::vector<std::int64_t> sent_at, expected_at;
  };
  // Beside a slot; far from it, since it is seldom touched.
  struct Since {
    std::atomic<std::uint64_t> joined{0};  // seq + 1
    std::atomic<std::int64_t> ticks{0};    // of the steady clock
  };
  struct alignas(64) Operation {
    // Ranks that armed; from bit 32, how many of them await an event.
    std::atomic<std::uint64_t> armed{0};
    std::atomic<int> shares_done{0};
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

  Since& since(std::uint64_t seq, int rank) const {
    return since_[slots(seq) + rank - slots_.get()];
  }
  const PairCounts& counts(std::uint64_t seq, int rank) const {
    return *counts_[slots(seq) + rank - slots_.get()];
  }

  // Where the chunks of the share of `rank` lie.
  Cut CutOf(std::uint64_t seq, int rank, std::uint64_t signature) const;
  // To be done, of an operation by counts that is not over.
  int SharesByCounts(std::uint64_t seq) const;
  // One of `shares` in all has ended.
  void ShareDone(std::uint64_t seq, int shares, Effects* effects);
  bool Claim(Slot* slot, std::uint64_t seq, std::uint64_t* chunk,
             std::uint64_t* share_chunks) const;
  // False where a rank's signature is another than that of `rank`.
  bool Agree(int rank, std::uint64_t seq, Effects* effects) const;
  bool PairsAgree(std::uint64_t seq, Effects* effects) const;

  // A part of a chunk that lies in one block of the flow.
  struct Piece {
    Reduction reduction;
    Block block;
  };
  absl::Status Compute(int rank, std::uint64_t seq, const Cut& cut, int share,
                       std::uint64_t chunk);
  // What is to be reduced, `offset` bytes into each rank's input.
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
  // Beside each slot, where its collective goes by counts.
  const std::unique_ptr<std::unique_ptr<const PairCounts>[]> counts_;
  const std::unique_ptr<Rank[]> ranks_;

  // Read by all, seldom written.
  alignas(64) std::atomic<Phase> phase_{Phase::kAlive};
  // The least departed_at of all ranks.
  std::atomic<std::uint64_t> departed_first_{kStays};
  // Threads in ArmLater() and DeliverLater().
  alignas(64) std::atomic<int> others_inside_{0};
  alignas(64) std::atomic<std::uint64_t> runnable_version_{0};
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Messages messages_;
  // By rank; written before `phase_` is kAborted, and constant from then on.
  std::vector<std::vector<Waiting>> waits_at_abort_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_GROUP_STATE_H_
