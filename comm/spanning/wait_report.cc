#include "comm/spanning/wait_report.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace troupe::comm::internal {
namespace {

using Clock = std::chrono::steady_clock;

std::string CollectiveText(const Collective& collective, std::uint64_t seq) {
  return absl::StrCat(collective.ToString(), ", collective ", seq,
                      " of the group");
}
std::string CollectiveText(const Operation& op, int place) {
  return CollectiveText(op.calls[place].collective, op.seq);
}

}  // namespace

std::vector<Waiting> WaitReport::Of(int place) const {
  return recorded_.empty() ? Now(place) : recorded_[place];
}

std::vector<Waiting> WaitReport::Now(int place) const {
  const GroupLayout& layout = context_.layout();
  const int rank = context_.ranks_here()[place];
  std::vector<Waiting> waits;
  for (const auto& [seq, op] : table_.all()) {
    const LocalCalls::Call& mine = op->calls[place];
    if (!mine.joined) continue;
    Waiting& wait = waits.emplace_back();
    wait.what = CollectiveText(*op, place);
    wait.collective = static_cast<std::int64_t>(seq);
    wait.since = mine.since == Clock::time_point() ? Clock::now() : mine.since;
    for (int r = 0; r < layout.size(); ++r) {
      const int member = layout.member_of(r);
      const bool come = member == layout.self()
                            ? op->calls[layout.place_of(r)].armed
                            : op->notes[member].here;
      if (!come && r != rank) wait.ranks.push_back(r);
    }
  }
  for (Waiting& wait : messages_.pending(rank).Waits(rank, layout.size())) {
    waits.push_back(std::move(wait));
  }
  return waits;
}

void WaitReport::Record() {
  const int places = static_cast<int>(context_.ranks_here().size());
  std::vector<std::vector<Waiting>> waits;
  for (int p = 0; p < places; ++p) waits.push_back(Now(p));
  recorded_ = std::move(waits);
}

// A rank that was computing at the time of the abort starts its next collective
// soon: that is the one which the lost peer blocks.
void WaitReport::RecordRefused(int place, const Collective& collective) {
  std::vector<Waiting>& waits = recorded_[place];
  const std::uint64_t next = table_.joined(place);
  const auto seq = static_cast<std::int64_t>(next);
  const auto is_it = [seq](const Waiting& wait) {
    return wait.collective == seq;
  };
  if (std::any_of(waits.begin(), waits.end(), is_it)) return;
  const int rank = context_.ranks_here()[place];
  Waiting wait;
  wait.what = CollectiveText(collective, next);
  wait.collective = seq;
  wait.since = Clock::now();
  for (int r = 0; r < context_.layout().size(); ++r) {
    if (r != rank) wait.ranks.push_back(r);
  }
  waits.push_back(std::move(wait));
}

// For another process returns all of its ranks: it sends one note, after the
// last.
std::vector<int> WaitReport::AbsentAt(const Operation& op, int member) const {
  const GroupLayout& layout = context_.layout();
  if (member != layout.self()) {
    return op.notes[member].here ? std::vector<int>() : layout.ranks_of(member);
  }
  std::vector<int> absent;
  for (int rank : layout.ranks_of(member)) {
    if (!op.calls[layout.place_of(rank)].joined) absent.push_back(rank);
  }
  return absent;
}

std::string WaitReport::AbsentText(const Operation& op) const {
  const GroupLayout& layout = context_.layout();
  std::vector<int> unarmed;
  for (int rank : context_.ranks_here()) {
    const LocalCalls::Call& here = op.calls[layout.place_of(rank)];
    if (here.joined && !here.armed) unarmed.push_back(rank);
  }
  std::vector<std::string> absent;
  for (int m = 0; m < layout.members(); ++m) {
    const std::vector<int> ranks = AbsentAt(op, m);
    if (ranks.empty()) continue;
    const bool some = m != layout.self() && ranks.size() > 1;
    absent.push_back(absl::StrCat(some ? "one or more of " : "", Ranks(ranks),
                                  " in ", context_.NameOf(m)));
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

std::string WaitReport::Describe(int place, const Operation& op) const {
  return absl::StrCat(CollectiveText(op, place), ":", AbsentText(op));
}

std::string WaitReport::FirstOf(int place) const {
  for (const auto& [seq, op] : table_.all()) {
    if (op->calls[place].joined) return Describe(place, *op);
  }
  return messages_.pending(context_.ranks_here()[place]).First();
}

std::string WaitReport::First() const {
  for (const auto& [seq, op] : table_.all()) {
    const int place = op->calls.first_place();
    if (place < 0) continue;
    return absl::StrCat("rank ", context_.ranks_here()[place], " waited for ",
                        op->first().ToString(), ", collective ", seq,
                        " of group ", context_.name());
  }
  const std::string receive = messages_.FirstReceive();
  return receive.empty()
             ? absl::StrCat("nothing was waited for in group ", context_.name())
             : absl::StrCat(receive, " waited in group ", context_.name());
}

}  // namespace troupe::comm::internal
