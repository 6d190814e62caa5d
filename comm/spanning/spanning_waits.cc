// Reports what the ranks of a spanning group wait for, and since when: for
// errors, and for the detection of ranks that wait for each other.

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/spanning/spanning_state.h"

namespace troupe::comm::internal {
namespace {

using Clock = std::chrono::steady_clock;

std::string CollectiveText(const Collective& collective, std::uint64_t seq) {
  return absl::StrCat(collective.ToString(), ", collective ", seq,
                      " of the group");
}
std::string CollectiveText(const Operation& op, int place) {
  return CollectiveText(op.ranks[place].collective, op.seq);
}

}  // namespace

void SpanningState::SetSince(int place, const OpPtr& op) {
  const Clock::time_point now = Clock::now();
  absl::MutexLock lock(&mutex_);
  op->ranks[place].since = now;
}

// For another process returns all of its ranks: it sends one note, after the
// last.
std::vector<int> SpanningState::AbsentAt(const Operation& op,
                                         int member) const {
  if (member != layout_.self()) {
    return op.notes[member].here ? std::vector<int>()
                                 : layout_.ranks_of(member);
  }
  std::vector<int> absent;
  for (int rank : layout_.ranks_of(member)) {
    if (!op.ranks[layout_.place_of(rank)].joined) absent.push_back(rank);
  }
  return absent;
}

std::vector<Waiting> SpanningState::Waits(int place) const {
  absl::MutexLock lock(&mutex_);
  return status_.ok() ? WaitsNow(place) : waits_at_abort_[place];
}

std::vector<Waiting> SpanningState::WaitsNow(int place) const {
  const int rank = layout_.ranks_of(layout_.self())[place];
  std::vector<Waiting> waits;
  for (const auto& [seq, op] : ops_) {
    const Operation::Rank& mine = op->ranks[place];
    if (!mine.joined) continue;
    Waiting& wait = waits.emplace_back();
    wait.what = CollectiveText(*op, place);
    wait.collective = static_cast<std::int64_t>(seq);
    wait.since = mine.since == Clock::time_point() ? Clock::now() : mine.since;
    for (int r = 0; r < layout_.size(); ++r) {
      const int member = layout_.member_of(r);
      const bool come = member == layout_.self()
                            ? op->ranks[layout_.place_of(r)].armed
                            : op->notes[member].here;
      if (!come && r != rank) wait.ranks.push_back(r);
    }
  }
  for (Waiting& wait : messages_.pending(rank).Waits(rank, layout_.size())) {
    waits.push_back(std::move(wait));
  }
  return waits;
}

void SpanningState::NoteWaits() {
  const int places = static_cast<int>(next_.size());
  for (int p = 0; p < places; ++p) waits_at_abort_.push_back(WaitsNow(p));
}

// A rank that was computing at the time of the abort starts its next collective
// soon: that is the one which the lost peer blocks.
void SpanningState::NoteRefused(int place, const Collective& collective) {
  std::vector<Waiting>& waits = waits_at_abort_[place];
  const auto seq = static_cast<std::int64_t>(next_[place]);
  const auto is_it = [seq](const Waiting& wait) {
    return wait.collective == seq;
  };
  if (std::any_of(waits.begin(), waits.end(), is_it)) return;
  const int rank = layout_.ranks_of(layout_.self())[place];
  Waiting wait;
  wait.what = CollectiveText(collective, next_[place]);
  wait.collective = seq;
  wait.since = Clock::now();
  for (int r = 0; r < layout_.size(); ++r) {
    if (r != rank) wait.ranks.push_back(r);
  }
  waits.push_back(std::move(wait));
}

std::string SpanningState::AbsentText(const Operation& op) const {
  std::vector<int> unarmed;
  for (int rank : layout_.ranks_of(layout_.self())) {
    const Operation::Rank& here = op.ranks[layout_.place_of(rank)];
    if (here.joined && !here.armed) unarmed.push_back(rank);
  }
  std::vector<std::string> absent;
  for (int m = 0; m < layout_.members(); ++m) {
    const std::vector<int> ranks = AbsentAt(op, m);
    if (ranks.empty()) continue;
    const bool some = m != layout_.self() && ranks.size() > 1;
    absent.push_back(absl::StrCat(some ? "one or more of " : "", Ranks(ranks),
                                  " in ",
                                  board_->NameOf(layout_.process_of(m))));
  }
  std::string text;
  if (!absent.empty()) {
    text = absl::StrCat(" not started by ", absl::StrJoin(absent, ", "));
  }
  if (!unarmed.empty()) {
    absl::StrAppend(&text, text.empty() ? " " : "; ", Ranks(unarmed),
                    " started it after something that is not done");
  }
  if (text.empty()) text = " all ranks have started it, and work on it";
  return text;
}

std::string SpanningState::DescribeWait(int place, const Operation& op) const {
  absl::MutexLock lock(&mutex_);
  return absl::StrCat(CollectiveText(op, place), ":", AbsentText(op));
}

std::string SpanningState::PendingOf(int place) const {
  for (const auto& [seq, op] : ops_) {
    if (!op->ranks[place].joined) continue;
    return absl::StrCat(CollectiveText(*op, place), ":", AbsentText(*op));
  }
  return messages_.pending(layout_.ranks_of(layout_.self())[place]).First();
}

std::string SpanningState::FirstWait() const {
  for (const auto& [seq, op] : ops_) {
    if (op->first_place < 0) continue;
    return absl::StrCat("rank ",
                        layout_.ranks_of(layout_.self())[op->first_place],
                        " waited for ", op->first().ToString(), ", collective ",
                        seq, " of group ", options_.name);
  }
  const std::string receive = messages_.FirstReceive();
  return receive.empty()
             ? absl::StrCat("nothing was waited for in group ", options_.name)
             : absl::StrCat(receive, " waited in group ", options_.name);
}

}  // namespace troupe::comm::internal
