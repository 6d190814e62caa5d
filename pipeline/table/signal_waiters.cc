#include "pipeline/table/signal_waiters.h"

#include <algorithm>

#include "base/check.h"

namespace troupe::pipeline {

SignalWaiters::SignalWaiters(const StepTable& table,
                             const std::vector<int>& buckets)
    : actions_(static_cast<int>(table.actions.size())) {
  std::vector<int> counts = table.bucket_counts();
  counts.resize(std::max(counts.size(), buckets.size()));
  for (std::size_t chunk = 0; chunk < buckets.size(); ++chunk) {
    counts[chunk] = std::max(counts[chunk], buckets[chunk]);
  }
  for (int count : counts) {
    first_bucket_.push_back(buckets_);
    buckets_ += count;
  }
  for (const Action& action : table.actions) {
    for (const Signal& need : action.needs) {
      if (need.round > 0) {
        rounds_.try_emplace(KeyOf(need), static_cast<int>(rounds_.size()));
      }
    }
  }
  first_.assign(num_slots() + 1, 0);
  for (const Action& action : table.actions) {
    for (const Signal& need : action.needs) {
      const int slot = SlotOf(need);
      TROUPE_CHECK(slot >= 0 && slot < num_slots(),
                   "a need names what can come");
      ++first_[slot + 1];
    }
  }
  for (int slot = 0; slot < num_slots(); ++slot) {
    first_[slot + 1] += first_[slot];
  }
  waiting_.resize(first_.back());
  std::vector<int> next = first_;
  for (int i = 0; i < actions_; ++i) {
    for (const Signal& need : table.actions[i].needs) {
      waiting_[next[SlotOf(need)]++] = i;
    }
  }
}

int SignalWaiters::SlotOf(Signal signal) const {
  if (signal.round > 0) {
    const auto found = rounds_.find(KeyOf(signal));
    return found == rounds_.end() ? -1
                                  : actions_ + 3 * buckets_ + 3 + found->second;
  }
  switch (signal.kind) {
    case SignalKind::kDone:
      return signal.id;
    case SignalKind::kBucketReady:
      return actions_ + first_bucket_[signal.chunk] + signal.id;
    case SignalKind::kBucketReleased:
      return actions_ + buckets_ + first_bucket_[signal.chunk] + signal.id;
    case SignalKind::kBucketReduced:
      return actions_ + 2 * buckets_ + first_bucket_[signal.chunk] + signal.id;
    case SignalKind::kAllReduced:
      return actions_ + 3 * buckets_;
    case SignalKind::kLossReduced:
      return actions_ + 3 * buckets_ + 1;
    case SignalKind::kStepAsked:
      return actions_ + 3 * buckets_ + 2;
  }
  return -1;
}

}  // namespace troupe::pipeline
