#include "pipeline/table/table_cursor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/table/action_rules.h"

namespace troupe::pipeline {

TableCursor::TableCursor(StepTable table, const std::vector<int>& buckets)
    : table_(std::move(table)), waiters_(table_, buckets) {
  FindRoles();
  LayOutState();
  Begin();
}

void TableCursor::FindRoles() {
  std::vector<GroupId> groups;
  std::vector<int> last;  // per group: last collective so far
  for (int i = 0; i < static_cast<int>(table_.actions.size()); ++i) {
    const Action& action = table_.actions[i];
    const ActionRole role = RuleOf(action.kind).role;
    roles_.push_back({role == ActionRole::kCompute,
                      role == ActionRole::kReceive,
                      FollowsUpdates(action.kind)});
    drains_ += roles_.back().drains;
    if (role != ActionRole::kCollective) continue;
    const GroupId order = OrderOf(action);
    const auto found = std::find(groups.begin(), groups.end(), order);
    const int group = static_cast<int>(found - groups.begin());
    roles_[i].group = group;
    if (found == groups.end()) {
      groups.push_back(order);
      first_heads_.push_back(i);
      last.push_back(i);
    } else {
      roles_[std::exchange(last[group], i)].following = i;
    }
  }
}

GroupId TableCursor::OrderOf(const Action& collective) const {
  const GroupId group = GroupOf(collective);
  const bool joint = waiters_.each_micro_batch() && group != GroupId::kTpDpPp;
  return joint ? GroupId::kDp : group;
}

void TableCursor::LayOutState() {
  const int actions = static_cast<int>(table_.actions.size());
  const std::size_t ready_words = ReadySet::WordsFor(actions);
  const std::size_t ready_bytes = 2 * ready_words * sizeof(std::uint64_t);
  const std::size_t ints = actions + first_heads_.size();
  const std::size_t slots = waiters_.num_slots();
  // The parts with the widest elements come first, so that each is aligned.
  state_.resize(ready_bytes + ints * sizeof(int) + slots);
  auto* words = reinterpret_cast<std::uint64_t*>(state_.data());
  for (int compute : {0, 1}) {
    ready_[compute] = ReadySet(words + compute * ready_words, actions);
  }
  missing_ = reinterpret_cast<int*>(state_.data() + ready_bytes);
  heads_ = missing_ + actions;
  given_ = reinterpret_cast<std::uint8_t*>(missing_ + ints);
  std::copy(first_heads_.begin(), first_heads_.end(), heads_);
  for (int i = 0; i < actions; ++i) {
    missing_[i] = static_cast<int>(table_.actions[i].needs.size());
    if (missing_[i] == 0) Offer(i);
  }
  state_at_start_ = state_;
}

void TableCursor::Begin() {
  std::copy(state_at_start_.begin(), state_at_start_.end(), state_.begin());
  left_ = static_cast<int>(table_.actions.size());
  reduced_ = 0;
  busy_ = left_ - drains_;
}

void TableCursor::Offer(int action) {
  const Role& role = roles_[action];
  if (role.receive) return;
  if (role.group >= 0 && heads_[role.group] != action) return;
  ready_[role.compute].Insert(action);
}

void TableCursor::Raise(int slot) {
  given_[slot] = 1;
  for (int action : waiters_.Of(slot)) {
    if (--missing_[action] == 0) Offer(action);
  }
}

void TableCursor::Start(int action) {
  TROUPE_CHECK(!started(action), "an action starts once a step");
  missing_[action] += kStarted;
  const Role& role = roles_[action];
  ready_[role.compute].Erase(action);
  if (role.group < 0) return;
  if (!role.drains) --busy_;
  TROUPE_CHECK(heads_[role.group] == action,
               "the collectives of a group start in table order");
  heads_[role.group] = role.following;
  if (role.following >= 0 && missing_[role.following] == 0) {
    Offer(role.following);
  }
}

void TableCursor::Finish(int action) {
  if (!started(action)) Start(action);  // receives end without a start
  TROUPE_CHECK(!given_[action], "an action finishes once a step");
  Raise(action);
  --left_;
  const Role& role = roles_[action];
  if (role.group < 0 && !role.drains) --busy_;
}

void TableCursor::GiveGradients(int bucket, int chunk, int micro_batch,
                                bool last) {
  const bool each =
      waiters_.SlotOf({SignalKind::kBucketReady, bucket, chunk, 1}) >= 0;
  if (each) {
    Give({SignalKind::kBucketReady, bucket, chunk, micro_batch});
  } else if (last) {
    Give({SignalKind::kBucketReady, bucket, chunk});
  }
  if (last) Give({SignalKind::kBucketReleased, bucket, chunk});
}

void TableCursor::Give(Signal signal) {
  const int slot = waiters_.SlotOf(signal);
  if (slot < 0 || given_[slot]) return;
  Raise(slot);
  if (signal.kind == SignalKind::kBucketReduced &&
      ++reduced_ == waiters_.buckets()) {
    Raise(waiters_.SlotOf({SignalKind::kAllReduced, 0}));
  }
}

std::string TableCursor::Unfinished() const {
  const int chunks = table_.chunks();
  std::string text;
  for (std::size_t i = 0; i < table_.actions.size(); ++i) {
    if (given_[i]) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    table_.actions[i].ToString(chunks));
  }
  return text;
}

}  // namespace troupe::pipeline
