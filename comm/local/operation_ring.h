// Ring of the operations of a local group: one for each collective in flight,
// with a slot for each rank. Ranks fill slots, claim chunks and count shares
// without locks.
//
//   OperationRing ring(/*size=*/4, /*in_flight_max=*/64);
//   ring.Fill(rank, seq, collective, &event);
//   ring.Open(rank, seq, /*share_chunks=*/8);     // the rank has joined
//   std::uint64_t chunk, share_chunks;
//   while (ring.Claim(/*share=*/rank, seq, &chunk, &share_chunks)) {
//   }
//
// Each rank owns a *slot* of an operation, a cache line with its input, its
// range, and the claim word of its share of the chunks. The operation's own
// cache line is written once for each rank that arms and once for each share
// that is complete.
//
// The ring is reused: a claim word contains the generation of its operation, so
// a thread that read an old one cannot claim a chunk of a new one. All other
// fields of a slot are written by its rank before it arms, and read by threads
// that have seen the operation runnable, until it is finished.

#ifndef COMM_LOCAL_OPERATION_RING_H_
#define COMM_LOCAL_OPERATION_RING_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.h"

namespace troupe::comm::internal {

class OperationRing {
 public:
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
  struct alignas(64) Operation {
    // Number of ranks that armed; from bit 32, how many of them await an event.
    std::atomic<std::uint64_t> armed{0};
    std::atomic<int> shares_done{0};
    // seq + 1 of the latest finished operation in this place of the ring.
    std::atomic<std::uint64_t> finished{0};
  };
  // Counts of an all_to_all with unequal parts, and the offset of each part.
  struct PairCounts {
    explicit PairCounts(const Collective& collective);
    std::vector<std::int64_t> sent, expected;
    // One more entry than ranks: the last is the end.
    std::vector<std::int64_t> sent_at, expected_at;
  };
  // How far a rank has come with a collective.
  enum class Stage { kAbsent, kJoined, kArmed };

  // `in_flight_max` is a power of two.
  OperationRing(int size, int in_flight_max);

  int size() const { return size_; }
  std::uint64_t in_flight_max() const { return in_flight_max_; }

  Operation& operation(std::uint64_t seq) const {
    return operations_[seq & (in_flight_max_ - 1)];
  }
  // Returns the slots of all ranks.
  Slot* slots(std::uint64_t seq) const {
    return &slots_[(seq & (in_flight_max_ - 1)) * size_];
  }
  // Requires that the rank's collective is an all_to_all by counts.
  const PairCounts& counts(std::uint64_t seq, int rank) const {
    return *counts_[IndexOf(seq, rank)];
  }
  // Returns the signature of what a rank started.
  std::uint64_t signature(std::uint64_t seq, int rank) const {
    return slots(seq)[rank].signature.load(std::memory_order_relaxed);
  }

  // Fill() writes a rank's slot, with its event unless null, and returns the
  // signature; Open() then makes its `share_chunks` claimable.
  std::uint64_t Fill(int rank, std::uint64_t seq, const Collective& collective,
                     const Event* event);
  void Open(int rank, std::uint64_t seq, std::uint64_t share_chunks);
  // SetArmed() records in its slot that a rank has armed; CountArmed(), after
  // it, counts the rank, and `with_event` whether it awaits an event.
  void SetArmed(int rank, std::uint64_t seq) {
    slots(seq)[rank].stage.store(2 * (seq + 1) + 1, std::memory_order_release);
  }
  struct Armed {
    bool all = false;    // all ranks have armed
    bool event = false;  // one of those that have awaits an event
  };
  Armed CountArmed(std::uint64_t seq, bool with_event) {
    const std::uint64_t mine = with_event ? kOneEvent + 1 : 1;
    const std::uint64_t armed = operation(seq).armed.fetch_add(mine) + mine;
    return {
        static_cast<std::uint32_t>(armed) == static_cast<std::uint32_t>(size_),
        armed >= kOneEvent};
  }
  Stage StageOf(std::uint64_t seq, int rank) const {
    const std::uint64_t stage =
        slots(seq)[rank].stage.load(std::memory_order_acquire);
    if (stage / 2 != seq + 1) return Stage::kAbsent;
    return stage % 2 == 0 ? Stage::kJoined : Stage::kArmed;
  }
  bool runnable(std::uint64_t seq) const {
    return static_cast<std::uint32_t>(operation(seq).armed.load(
               std::memory_order_acquire)) == static_cast<std::uint32_t>(size_);
  }
  bool finished(std::uint64_t seq) const {
    return operation(seq).finished.load(std::memory_order_acquire) == seq + 1;
  }

  // Claims a chunk of a share. Returns false if none is left.
  bool Claim(int share, std::uint64_t seq, std::uint64_t* chunk,
             std::uint64_t* share_chunks) const {
    std::atomic<std::uint64_t>& claim = slots(seq)[share].claim;
    std::uint64_t word = claim.load(std::memory_order_relaxed);
    while (word >> 40 == GenerationOf(seq)) {
      *chunk = word & kNextMask;
      *share_chunks = (word >> 20) & kNextMask;
      if (*chunk == *share_chunks) return false;
      if (claim.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  // Records that a claimed chunk is complete. Returns whether it was the last
  // of its share, which has `share_chunks`.
  bool EndChunk(int share, std::uint64_t seq, std::uint64_t share_chunks) {
    if (share_chunks == 1) return true;
    std::atomic<std::uint32_t>& done = slots(seq)[share].chunks_done;
    return done.fetch_add(1, std::memory_order_acq_rel) + 1 == share_chunks;
  }
  // Records that a share is complete. Returns whether it was the last of
  // `shares`.
  bool EndShare(std::uint64_t seq, int shares) {
    std::atomic<int>& done = operation(seq).shares_done;
    return done.fetch_add(1, std::memory_order_acq_rel) + 1 == shares;
  }
  // Returns the number of shares that have chunks.
  int SharesWithChunks(std::uint64_t seq) const;
  // Adds the events of an operation, if ranks await them, to `events`, and
  // prepares its place for the next one.
  template <typename Events>
  void Finish(std::uint64_t seq, Events* events) {
    Operation& operation = this->operation(seq);
    if (operation.armed.load(std::memory_order_relaxed) >= kOneEvent) {
      Slot* const all = slots(seq);
      for (int r = 0; r < size_; ++r) {
        events->push_back(std::exchange(all[r].event, Event()));
      }
    }
    operation.shares_done.store(0, std::memory_order_relaxed);
    operation.armed.store(0, std::memory_order_relaxed);
    operation.finished.store(seq + 1, std::memory_order_release);
  }
  // Takes the events of all operations, of an aborted group.
  std::vector<Event> TakeEvents();

  // SetSince() sets the time since when a rank waits for a collective, which it
  // has joined or will join; Since() returns that time, or the current one.
  void SetSince(int rank, std::uint64_t seq);
  std::chrono::steady_clock::time_point Since(int rank,
                                              std::uint64_t seq) const;

 private:
  // Kept apart from the slot, since it is seldom used.
  struct StartTime {
    std::atomic<std::uint64_t> joined{0};  // seq + 1
    std::atomic<std::int64_t> ticks{0};    // steady clock
  };
  static constexpr std::uint64_t kOneEvent = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kNextMask = (std::uint64_t{1} << 20) - 1;

  std::size_t IndexOf(std::uint64_t seq, int rank) const {
    return (seq & (in_flight_max_ - 1)) * size_ + rank;
  }
  std::uint64_t GenerationOf(std::uint64_t seq) const {
    return (seq >> in_flight_log2_) & 0xffffff;
  }

  const int size_;
  const std::uint64_t in_flight_max_;
  const int in_flight_log2_;
  const std::unique_ptr<Operation[]> operations_;
  // The following have [in_flight_max, size] elements.
  const std::unique_ptr<Slot[]> slots_;
  const std::unique_ptr<StartTime[]> since_;
  // Set if the slot's collective is an all_to_all by counts.
  const std::unique_ptr<std::unique_ptr<const PairCounts>[]> counts_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_OPERATION_RING_H_
