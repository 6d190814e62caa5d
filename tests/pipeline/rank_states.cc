#include "tests/pipeline/rank_states.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/table/action_rules.h"

namespace troupe::pipeline {
namespace {

std::uint64_t Bit(int i) { return std::uint64_t{1} << i; }

}  // namespace

RankStates::RankStates(const StepTable& table, int bound,
                       std::vector<bool> has_peers)
    : cursor_(table),
      bound_(bound),
      has_peers_(std::move(has_peers)),
      buckets_(table.bucket_counts()) {
  const int actions = static_cast<int>(table.actions.size());
  TROUPE_CHECK(actions <= kActionsMax, "a state has a bit for each action");
  last_writes_.assign(table.chunks(), -1);
  for (int id = 0; id < actions; ++id) {
    all_ |= Bit(id);
    if (EndsBackward(table.actions[id].kind)) {
      last_writes_[table.actions[id].chunk] = id;
    }
  }
  State start;
  Settle(start);
  states_.push_back(start);
  numbers_[Key(start.done, start.started, start.ready)] = 0;
  after_.emplace_back();
}

bool RankStates::HasBuckets(int state) const {
  const State& now = at(state);
  if (now.computing < 0) return false;
  const int chunk = ActionOf(now.computing).chunk;
  return now.computing == last_writes_[chunk] && buckets_[chunk] > 0 &&
         (now.ready & Bit(chunk)) == 0;
}

int RankStates::After(int state, const RankEvent& event) {
  if (after_[state].empty()) after_[state].assign(3 * kActionsMax, -1);
  const int place = event.kind * kActionsMax + event.action;
  if (after_[state][place] >= 0) return after_[state][place];
  State next = at(state);
  next.before = state;
  next.by = event;
  Lead(state);
  if (!Change(next, event)) return -1;
  const auto [found, is_new] =
      numbers_.try_emplace(Key(next.done, next.started, next.ready), size());
  const int number = found->second;
  after_[state][place] = number;
  if (is_new) {
    states_.push_back(next);
    after_.emplace_back();
  } else if (at(number).offered != next.offered) {
    Wrong(event.action, "leads to offers that depend on the way");
    return -1;
  }
  return number;
}

void RankStates::Lead(int state) {
  std::vector<RankEvent> way;
  for (int at = state; at > 0; at = states_[at].before) {
    way.push_back(states_[at].by);
  }
  std::reverse(way.begin(), way.end());
  cursor_.Begin();
  State now;
  Settle(now);
  for (const RankEvent& event : way) Change(now, event);
}

bool RankStates::Change(State& state, const RankEvent& event) {
  switch (event.kind) {
    case RankEvent::kStart:
      if (!Start(state, event.action)) return false;
      break;
    case RankEvent::kBuckets: {
      const int chunk = ActionOf(event.action).chunk;
      state.ready |= Bit(chunk);
      for (int k = 0; k < buckets_[chunk]; ++k) {
        cursor_.Give({SignalKind::kBucketReady, k, chunk});
        cursor_.Give({SignalKind::kBucketReleased, k, chunk});
      }
      break;
    }
    case RankEvent::kEnd:
      Finish(state, event.action);
      break;
  }
  return Settle(state);
}

bool RankStates::Start(State& state, int id) {
  if (const char* const wrong = WrongStart(state, id)) return Wrong(id, wrong);
  const Action& action = ActionOf(id);
  cursor_.Start(id);
  state.started |= Bit(id);
  if (!IsCompute(action.kind)) return true;
  state.computing = id;
  state.alive += action.kind == ActionKind::kForward;
  return state.alive <= bound_ ||
         Wrong(id, "keeps more activations than the bound");
}

void RankStates::Finish(State& state, int id) {
  const Action& action = ActionOf(id);
  state.started |= Bit(id);
  state.done |= Bit(id);
  if (state.computing == id) state.computing = -1;
  state.alive -= EndsBackward(action.kind);
  cursor_.Finish(id);
  if (action.kind == ActionKind::kReduceLoss) {
    cursor_.Give({SignalKind::kLossReduced, 0});
  } else if (IsReduced(action)) {
    cursor_.Give({SignalKind::kBucketReduced, action.index, action.chunk});
  }
}

// Whether the end of the action is that of a bucket's reduction.
bool RankStates::IsReduced(const Action& action) const {
  if (action.kind == ActionKind::kReduceUpdateBucket) return true;
  return action.kind == ActionKind::kReduceBucket &&
         table().Find(action.kind, action.index, action.chunk,
                      action.round + 1) < 0;
}

bool RankStates::Settle(State& state) {
  while (true) {
    state.offered = cursor_.NextRunnable(/*busy=*/state.computing >= 0);
    const int id = state.offered;
    if (id < 0 || IsCompute(ActionOf(id).kind)) return true;
    if (!Start(state, id)) return false;
    if (!has_peers_[id]) Finish(state, id);
  }
}

bool RankStates::IsThere(const State& state, const Signal& need) const {
  const auto is_done = [&](ActionKind kind, int index, int chunk,
                           int round = 0) {
    const int id = table().Find(kind, index, chunk, round);
    return id >= 0 && (state.done & Bit(id)) != 0;
  };
  const auto is_reduced = [&](int bucket, int chunk) {
    return is_done(ActionKind::kReduceBucket, bucket, chunk,
                   table().rounds() - 1) ||
           is_done(ActionKind::kReduceUpdateBucket, bucket, chunk);
  };
  switch (need.kind) {
    case SignalKind::kDone:
      return (state.done & Bit(need.id)) != 0;
    case SignalKind::kBucketReady:
    case SignalKind::kBucketReleased:
      return (state.ready & Bit(need.chunk)) != 0;
    case SignalKind::kBucketReduced:
      return is_reduced(need.id, need.chunk);
    case SignalKind::kLossReduced:
      return is_done(ActionKind::kReduceLoss, 0, 0);
    case SignalKind::kStepAsked:
      return false;  // only a loop's table needs it
    case SignalKind::kAllReduced:
      for (int chunk = 0; chunk < table().chunks(); ++chunk) {
        for (int k = 0; k < buckets_[chunk]; ++k) {
          if (!is_reduced(k, chunk)) return false;
        }
      }
      return true;
  }
  return false;
}

const char* RankStates::WrongStart(const State& state, int id) const {
  const Action& action = ActionOf(id);
  if ((state.started & Bit(id)) != 0) return "starts a second time";
  for (const Signal& need : action.needs) {
    if (!IsThere(state, need)) return "starts before its needs are there";
  }
  if (IsCompute(action.kind) && state.computing >= 0) {
    return "begins beside another";
  }
  const bool ordered = IsCompute(action.kind) || IsCollective(action.kind);
  if (!ordered || action.kind == ActionKind::kForward) return nullptr;
  for (int before = 0; before < static_cast<int>(table().actions.size());
       ++before) {
    const Action& other = ActionOf(before);
    if ((state.started & Bit(before)) != 0 || before == id) continue;
    if (IsCollective(action.kind)
            ? before < id && IsCollective(other.kind) &&
                  GroupOf(other) == GroupOf(action)
            : other.kind == action.kind && other.chunk == action.chunk &&
                  other.index < action.index) {
      return "overtakes one of its kind";
    }
  }
  return nullptr;
}

bool RankStates::Wrong(int id, const char* what) {
  error_ = absl::StrCat(ActionOf(id).ToString(table().chunks()), " ", what);
  return false;
}

std::string RankStates::Unfinished(int state) const {
  std::string text;
  for (int id = 0; id < static_cast<int>(table().actions.size()); ++id) {
    if ((at(state).done & Bit(id)) != 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    ActionOf(id).ToString(table().chunks()));
  }
  return text;
}

std::string RankStates::EventBetween(int from, int to) const {
  const std::vector<int>& after = after_[from];
  for (int place = 0; place < static_cast<int>(after.size()); ++place) {
    if (after[place] != to) continue;
    return ToString({static_cast<RankEvent::Kind>(place / kActionsMax),
                     place % kActionsMax});
  }
  return "";
}

std::string RankStates::ToString(const RankEvent& event) const {
  const std::string action = ActionOf(event.action).ToString(table().chunks());
  switch (event.kind) {
    case RankEvent::kStart:
      return action;
    case RankEvent::kBuckets:
      return absl::StrCat(action, "!");
    case RankEvent::kEnd:
      return absl::StrCat(action, ".");
  }
  return action;
}

}  // namespace troupe::pipeline
