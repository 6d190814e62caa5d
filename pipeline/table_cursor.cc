#include "pipeline/table_cursor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/action_rules.h"
#include "pipeline/group_id.h"

namespace troupe::pipeline {

TableCursor::TableCursor(StepTable table, const std::vector<int>& buckets)
    : table_(std::move(table)) {
  std::vector<int> counts = table_.bucket_counts();
  counts.resize(std::max(counts.size(), buckets.size()));
  for (std::size_t chunk = 0; chunk < buckets.size(); ++chunk) {
    counts[chunk] = std::max(counts[chunk], buckets[chunk]);
  }
  for (int count : counts) {
    first_bucket_.push_back(buckets_);
    buckets_ += count;
  }
  FindRoles();
  LinkNeeds();
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
                      role == ActionRole::kUpdate});
    updates_ += roles_.back().update;
    if (role != ActionRole::kCollective) continue;
    const auto found = std::find(groups.begin(), groups.end(), GroupOf(action));
    const int group = static_cast<int>(found - groups.begin());
    roles_[i].group = group;
    if (found == groups.end()) {
      groups.push_back(GroupOf(action));
      first_heads_.push_back(i);
      last.push_back(i);
    } else {
      roles_[std::exchange(last[group], i)].following = i;
    }
  }
}

void TableCursor::LinkNeeds() {
  const int actions = static_cast<int>(table_.actions.size());
  const int slots = actions + 3 * buckets_ + 3;
  first_waiting_.assign(slots + 1, 0);
  for (const Action& action : table_.actions) {
    for (const Signal& need : action.needs) {
      const int slot = SlotOf(need);
      TROUPE_CHECK(slot >= 0 && slot < slots, "a need names what can come");
      ++first_waiting_[slot + 1];
    }
  }
  for (int slot = 0; slot < slots; ++slot) {
    first_waiting_[slot + 1] += first_waiting_[slot];
  }
  waiting_.resize(first_waiting_.back());
  std::vector<int> next = first_waiting_;
  for (int i = 0; i < actions; ++i) {
    for (const Signal& need : table_.actions[i].needs) {
      waiting_[next[SlotOf(need)]++] = i;
    }
  }
}

void TableCursor::LayOutState() {
  const int actions = static_cast<int>(table_.actions.size());
  const std::size_t ready_words = ReadySet::WordsFor(actions);
  const std::size_t ready_bytes = 2 * ready_words * sizeof(std::uint64_t);
  const std::size_t ints = actions + first_heads_.size();
  const std::size_t slots = first_waiting_.size() - 1;
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

int TableCursor::SlotOf(Signal signal) const {
  const int actions = static_cast<int>(table_.actions.size());
  switch (signal.kind) {
    case SignalKind::kDone:
      return signal.id;
    case SignalKind::kBucketReady:
      return actions + first_bucket_[signal.chunk] + signal.id;
    case SignalKind::kBucketReleased:
      return actions + buckets_ + first_bucket_[signal.chunk] + signal.id;
    case SignalKind::kBucketReduced:
      return actions + 2 * buckets_ + first_bucket_[signal.chunk] + signal.id;
    case SignalKind::kAllReduced:
      return actions + 3 * buckets_;
    case SignalKind::kLossReduced:
      return actions + 3 * buckets_ + 1;
    case SignalKind::kStepAsked:
      return actions + 3 * buckets_ + 2;
  }
  return -1;
}

void TableCursor::Begin() {
  std::copy(state_at_start_.begin(), state_at_start_.end(), state_.begin());
  left_ = static_cast<int>(table_.actions.size());
  reduced_ = 0;
  busy_ = left_ - updates_;
}

void TableCursor::Offer(int action) {
  const Role& role = roles_[action];
  if (role.receive) return;
  if (role.group >= 0 && heads_[role.group] != action) return;
  ready_[role.compute].Insert(action);
}

void TableCursor::Raise(int slot) {
  given_[slot] = 1;
  const int end = first_waiting_[slot + 1];
  for (int i = first_waiting_[slot]; i < end; ++i) {
    if (--missing_[waiting_[i]] == 0) Offer(waiting_[i]);
  }
}

void TableCursor::Start(int action) {
  TROUPE_CHECK(!started(action), "an action starts once a step");
  missing_[action] += kStarted;
  const Role& role = roles_[action];
  ready_[role.compute].Erase(action);
  if (role.group < 0) return;
  --busy_;
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
  if (role.group < 0 && !role.update) --busy_;
}

void TableCursor::Give(Signal signal) {
  const int slot = SlotOf(signal);
  if (given_[slot]) return;
  Raise(slot);
  if (signal.kind == SignalKind::kBucketReduced && ++reduced_ == buckets_) {
    Raise(SlotOf({SignalKind::kAllReduced, 0}));
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
