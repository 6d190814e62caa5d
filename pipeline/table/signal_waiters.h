// The actions of a table that wait for each signal. A signal is known by its
// slot, a small number: those of actions that end have the actions' numbers.
//
//   const SignalWaiters waiters(table, /*buckets=*/{});
//   const int slot = waiters.SlotOf({SignalKind::kBucketReduced, bucket});
//   for (int action : waiters.Of(slot)) {
//     --missing[action];
//   }
//
// Cost: SlotOf() and Of() take constant time; all lists are one array.

#ifndef PIPELINE_TABLE_SIGNAL_WAITERS_H_
#define PIPELINE_TABLE_SIGNAL_WAITERS_H_

#include <cstddef>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

class SignalWaiters {
 public:
  // `buckets`: number of buckets of each chunk that give signals; at least the
  // table's.
  SignalWaiters(const StepTable& table, const std::vector<int>& buckets);

  // Number of buckets of all chunks.
  int buckets() const { return buckets_; }
  int num_slots() const {
    return actions_ + 3 * buckets_ + 3 + static_cast<int>(rounds_.size());
  }
  // Returns whether a reduction has a round for each micro-batch.
  bool each_micro_batch() const { return !rounds_.empty(); }
  // Returns -1 for a signal of a round after the first that no action needs.
  int SlotOf(Signal signal) const;
  // Returns the actions that need the signal of a slot, in table order.
  absl::Span<const int> Of(int slot) const {
    return {waiting_.data() + first_[slot],
            static_cast<std::size_t>(first_[slot + 1] - first_[slot])};
  }

 private:
  using Key = std::tuple<SignalKind, int, int, int>;
  static Key KeyOf(const Signal& signal) {
    return {signal.kind, signal.id, signal.chunk, signal.round};
  }

  int actions_;
  int buckets_ = 0;
  std::vector<int> first_bucket_;  // per chunk: its first bucket among all
  // Numbers of the signals of later rounds, from 0.
  absl::flat_hash_map<Key, int> rounds_;
  // The actions that wait for slot s are waiting_[first_[s]] up to, but
  // without, waiting_[first_[s + 1]].
  std::vector<int> first_;
  std::vector<int> waiting_;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_SIGNAL_WAITERS_H_
