#include "pipeline/table_cursor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::pipeline {

bool IsCompute(ActionKind kind) {
  return kind == ActionKind::kForward || kind == ActionKind::kBackward ||
         kind == ActionKind::kBackwardInputs ||
         kind == ActionKind::kBackwardWeights;
}

bool IsReceive(ActionKind kind) {
  return kind == ActionKind::kRecvActivation ||
         kind == ActionKind::kRecvGradient;
}

bool IsCollective(ActionKind kind) {
  return kind == ActionKind::kReduceLoss || kind == ActionKind::kReduceBucket ||
         kind == ActionKind::kReduceUpdateBucket;
}

GroupId GroupOf(ActionKind kind) {
  TROUPE_CHECK(IsCollective(kind), "only a collective has a group");
  return kind == ActionKind::kReduceLoss ? GroupId::kWorld : GroupId::kDp;
}

TableCursor::TableCursor(StepTable table, int buckets)
    : table_(std::move(table)), buckets_(std::max(buckets, table_.buckets())) {
  const int actions = static_cast<int>(table_.actions.size());
  for (int i = 0; i < actions; ++i) {
    const Action& action = table_.actions[i];
    std::vector<int> slots;
    for (const Signal& need : action.needs) slots.push_back(SlotOf(need));
    needs_.push_back(std::move(slots));
    order_of_.push_back(-1);
    if (!IsCollective(action.kind)) continue;
    LaunchOrder& order = OrderOf(GroupOf(action.kind));
    order.actions.push_back(i);
    order_of_.back() = static_cast<int>(&order - orders_.data());
  }
  slots_.resize(actions + 3 * buckets_ + 2);
  started_.resize(actions);
  Begin();
}

TableCursor::LaunchOrder& TableCursor::OrderOf(GroupId group) {
  for (LaunchOrder& order : orders_) {
    if (order.group == group) return order;
  }
  orders_.push_back({group, {}});
  return orders_.back();
}

int TableCursor::SlotOf(Signal signal) const {
  const int actions = static_cast<int>(table_.actions.size());
  switch (signal.kind) {
    case SignalKind::kDone:
      return signal.id;
    case SignalKind::kBucketReady:
      return actions + signal.id;
    case SignalKind::kBucketReleased:
      return actions + buckets_ + signal.id;
    case SignalKind::kBucketReduced:
      return actions + 2 * buckets_ + signal.id;
    case SignalKind::kAllReduced:
      return actions + 3 * buckets_;
    case SignalKind::kLossReduced:
      return actions + 3 * buckets_ + 1;
  }
  return -1;
}

void TableCursor::Begin() {
  std::fill(slots_.begin(), slots_.end(), 0);
  std::fill(started_.begin(), started_.end(), 0);
  left_ = static_cast<int>(table_.actions.size());
  reduced_ = 0;
  first_unstarted_ = 0;
  for (LaunchOrder& order : orders_) order.next = 0;
}

bool TableCursor::MayStart(int action) const {
  for (int slot : needs_[action]) {
    if (!slots_[slot]) return false;
  }
  if (order_of_[action] < 0) return true;
  const LaunchOrder& order = orders_[order_of_[action]];
  return order.actions[order.next] == action;
}

int TableCursor::NextRunnable(bool busy) const {
  const int actions = static_cast<int>(table_.actions.size());
  for (int i = first_unstarted_; i < actions; ++i) {
    const ActionKind kind = table_.actions[i].kind;
    if (started_[i] || IsReceive(kind) || (busy && IsCompute(kind))) continue;
    if (MayStart(i)) return i;
  }
  return -1;
}

void TableCursor::Start(int action) {
  TROUPE_CHECK(!started_[action], "an action starts once a step");
  started_[action] = 1;
  if (order_of_[action] >= 0) ++orders_[order_of_[action]].next;
  const int actions = static_cast<int>(table_.actions.size());
  while (first_unstarted_ < actions && started_[first_unstarted_]) {
    ++first_unstarted_;
  }
}

void TableCursor::Finish(int action) {
  if (!started_[action]) Start(action);  // receives finish without a start
  TROUPE_CHECK(!slots_[action], "an action finishes once a step");
  slots_[action] = 1;
  --left_;
}

void TableCursor::Give(Signal signal) {
  std::uint8_t& slot = slots_[SlotOf(signal)];
  if (slot) return;
  slot = 1;
  if (signal.kind == SignalKind::kBucketReduced && ++reduced_ == buckets_) {
    slots_[SlotOf({SignalKind::kAllReduced, 0})] = 1;
  }
}

std::string TableCursor::Unfinished() const {
  std::string text;
  for (std::size_t i = 0; i < table_.actions.size(); ++i) {
    if (slots_[i]) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    table_.actions[i].ToString());
  }
  return text;
}

}  // namespace troupe::pipeline
