#include "actors/supervision/wait_graph.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace troupe::actors {
namespace {

// Limits on the runs of consecutive ranks in a list, and on the roots in a
// text.
constexpr std::size_t kRunsMax = 8;
constexpr std::size_t kRootsMax = 4;

// Returns "rank 1", or "ranks 0, 2 to 5". `ranks` must be in ascending order.
std::string RanksText(const std::vector<int>& ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0, end; i < ranks.size(); i = end) {
    for (end = i + 1; end < ranks.size() && ranks[end] == ranks[end - 1] + 1;) {
      ++end;
    }
    if (runs.size() == kRunsMax) {
      runs.push_back(absl::StrCat(ranks.size() - i, " more"));
      break;
    }
    const int first = ranks[i], last = ranks[end - 1];
    runs.push_back(absl::StrCat(first));
    if (last == first + 1) runs.push_back(absl::StrCat(last));
    if (last > first + 1) absl::StrAppend(&runs.back(), " to ", last);
  }
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(runs, ", "));
}

std::string Bounded(const std::string& text) {
  return text.size() <= kWaitTextMax ? text : text.substr(0, kWaitTextMax);
}

std::string DurationText(std::int64_t nanos) {
  const absl::Duration waited = absl::Nanoseconds(nanos);
  return absl::FormatDuration(absl::Trunc(waited, waited < absl::Seconds(10)
                                                      ? absl::Milliseconds(1)
                                                      : absl::Seconds(0.1)));
}

// Returns "step 412, bucket 1: all_reduce(sum, f32 x 120), collective 823 of
// group replicas".
std::string WaitText(const RankWait& wait) {
  std::string text;
  if (wait.step >= 0) text = absl::StrCat("step ", wait.step + 1);
  if (!wait.part.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", Bounded(wait.part));
  }
  absl::StrAppend(&text, text.empty() ? "" : ": ", Bounded(wait.what));
  if (!wait.group.empty()) {
    absl::StrAppend(&text, " of group ", Bounded(wait.group));
  }
  return text;
}

}  // namespace

WaitGraph::WaitGraph(int ranks, const Roster* roster)
    : nodes_(ranks), roster_(roster) {}

void WaitGraph::SetLost(int rank) {
  if (!has(rank)) return;
  nodes_[rank].lost = true;
  any_lost_ = true;
}

void WaitGraph::LeaveOut(int rank) {
  if (has(rank)) nodes_[rank].left_out = true;
}

void WaitGraph::Add(RankWaits answer) {
  if (has(answer.rank)) nodes_[answer.rank].answer = std::move(answer);
}

std::vector<int> WaitGraph::Unsettled() const {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    const Node& node = nodes_[r];
    if (node.lost || node.left_out) continue;
    if (!node.answer || node.answer->busy) ranks.push_back(static_cast<int>(r));
  }
  return ranks;
}

bool WaitGraph::Joined(int rank, const RankWait& wait) const {
  if (wait.collective < 0) return false;
  const std::vector<RankWait>& theirs = nodes_[rank].answer->waits;
  return std::any_of(theirs.begin(), theirs.end(), [&](const RankWait& other) {
    return other.collective == wait.collective && other.group == wait.group;
  });
}

std::vector<int> WaitGraph::Missing(int waiting, const RankWait& wait) const {
  std::vector<int> missing, unknown;
  for (const int rank : wait.ranks) {
    if (!has(rank) || rank == waiting) continue;
    const Node& node = nodes_[rank];
    const bool there = !node.lost && node.answer;
    if (there && (wait.begun || Joined(rank, wait))) continue;
    (node.left_out && !node.lost ? unknown : missing).push_back(rank);
  }
  if (missing.empty() && !wait.begun) missing = std::move(unknown);
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return missing;
}

const RankWait* WaitGraph::Told(int rank) const {
  const Node& node = nodes_[rank];
  if (!node.answer || node.answer->waits.empty()) return nullptr;
  for (const RankWait& wait : node.answer->waits) {
    if (!Missing(rank, wait).empty()) return &wait;
  }
  return &node.answer->waits.front();
}

WaitGraph::Edges WaitGraph::FindEdges() const {
  Edges edges;
  edges.to.resize(nodes_.size());
  edges.from.resize(nodes_.size());
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    // A lost rank has no edges: it is a cause, whatever it waited for.
    if (nodes_[r].lost || !nodes_[r].answer) continue;
    std::vector<int>& to = edges.to[r];
    for (const RankWait& wait : nodes_[r].answer->waits) {
      for (int rank : Missing(static_cast<int>(r), wait)) to.push_back(rank);
    }
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
    for (int rank : to) edges.from[rank].push_back(static_cast<int>(r));
  }
  return edges;
}

std::vector<WaitGraph::Root> WaitGraph::FindRoots(const Edges& edges) const {
  std::vector<Root> roots;
  std::vector<bool> explained(nodes_.size());
  // A root explains every rank from which edges lead to it.
  const auto explain = [&](const Root& root) {
    std::deque<int> next(root.begin(), root.end());
    for (int rank : root) explained[rank] = true;
    for (; !next.empty(); next.pop_front()) {
      for (int rank : edges.from[next.front()]) {
        if (explained[rank]) continue;
        explained[rank] = true;
        next.push_back(rank);
      }
    }
  };
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    if (!edges.to[r].empty()) continue;
    explain({static_cast<int>(r)});
    if (!edges.from[r].empty()) roots.push_back({static_cast<int>(r)});
  }
  // Each rank left has an edge to another one left, so that a walk along edges
  // comes back to a rank it has seen: that is a cycle.
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    if (explained[r]) continue;
    Root walk;
    for (int at = static_cast<int>(r);; at = edges.to[at].front()) {
      const auto seen = std::find(walk.begin(), walk.end(), at);
      if (seen != walk.end()) {
        walk.erase(walk.begin(), seen);
        break;
      }
      walk.push_back(at);
    }
    explain(walk);
    roots.push_back(std::move(walk));
  }
  return roots;
}

std::string WaitGraph::StateOf(int rank) const {
  const Node& node = nodes_[rank];
  if (node.lost) return "lost";
  if (node.left_out) return "elsewhere, and not asked";
  if (!node.answer) return "giving no answer";
  if (const RankWait* const wait = Told(rank)) {
    return absl::StrCat("in ", WaitText(*wait),
                        ", of which no rank is missing");
  }
  return Bounded(node.answer->doing);
}

std::string WaitGraph::RootsText(const std::vector<Root>& roots) const {
  if (roots.empty()) return "no rank waits for another";
  std::vector<std::string> texts;
  // Groups ranks that are in the same process and state; lost ones come first.
  std::map<std::tuple<bool, int, std::string>, std::vector<int>> alike;
  for (const Root& root : roots) {
    if (root.size() > 1) {
      texts.push_back(absl::StrCat("ranks ", absl::StrJoin(root, ", "),
                                   ", which wait for each other in a circle"));
    } else {
      const int process = roster_ == nullptr ? -1 : roster_->ProcessOf(root[0]);
      const bool lives = !nodes_[root[0]].lost;
      alike[{lives, process, StateOf(root[0])}].push_back(root[0]);
    }
  }
  for (const auto& [key, ranks] : alike) {
    const auto& [lives, process, state] = key;
    texts.push_back(absl::StrCat(
        RanksText(ranks),
        process < 0 ? "" : absl::StrCat(" in ", roster_->Describe(process)),
        ranks.size() == 1 ? ", which is " : ", which are ", state));
  }
  if (texts.size() == 1) {
    return absl::StrCat("the root of the wait is ", texts[0]);
  }
  if (texts.size() > kRootsMax) {
    const std::size_t more = texts.size() - kRootsMax;
    texts.resize(kRootsMax);
    texts.push_back(absl::StrCat(more, " more"));
  }
  return absl::StrCat("the roots of the wait are ",
                      absl::StrJoin(texts, "; and "));
}

std::vector<std::string> WaitGraph::WaitLines(
    const std::vector<bool>& is_root) const {
  struct Line {
    std::vector<int> ranks;
    std::int64_t nanos = 0;
  };
  // Keyed by whether the wait is for no root, the missing ranks, and the text.
  std::map<std::tuple<bool, std::vector<int>, std::string>, Line> lines;
  for (int r = 0; r < static_cast<int>(nodes_.size()); ++r) {
    const RankWait* const wait = nodes_[r].lost ? nullptr : Told(r);
    if (wait == nullptr) continue;
    std::vector<int> missing = Missing(r, *wait);
    if (missing.empty() && is_root[r]) continue;  // it is among the roots
    const bool leads = std::any_of(missing.begin(), missing.end(),
                                   [&](int rank) { return is_root[rank]; });
    Line& line = lines[{!leads, std::move(missing), WaitText(*wait)}];
    line.ranks.push_back(r);
    line.nanos = std::max(line.nanos, wait->nanos);
  }
  std::vector<std::string> texts;
  for (const auto& [key, line] : lines) {
    const auto& [aside, missing, what] = key;
    const bool one = line.ranks.size() == 1;
    const std::string time = DurationText(line.nanos);
    texts.push_back(
        missing.empty()
            ? absl::StrCat(RanksText(line.ranks), one ? " has" : " have",
                           " been for ", time, " in ", what,
                           ", of which no rank is missing")
            : absl::StrCat(RanksText(line.ranks), one ? " has" : " have",
                           " waited ", time, " for ", RanksText(missing),
                           " in ", what));
  }
  return texts;
}

std::vector<std::string> WaitGraph::StateLines(
    const std::vector<bool>& is_root) const {
  std::map<std::string, std::vector<int>> alike;
  for (int r = 0; r < static_cast<int>(nodes_.size()); ++r) {
    const Node& node = nodes_[r];
    if (node.lost || node.left_out || is_root[r] || Told(r) != nullptr) {
      continue;
    }
    alike[StateOf(r)].push_back(r);
  }
  std::vector<std::string> lines;
  for (const auto& [state, ranks] : alike) {
    lines.push_back(absl::StrCat(RanksText(ranks),
                                 ranks.size() == 1 ? " is " : " are ", state));
  }
  return lines;
}

std::string WaitGraph::ToString() const {
  std::vector<Root> roots = FindRoots(FindEdges());
  const bool waits = !roots.empty();
  // If a rank is lost, groups were aborted in the middle of their collectives:
  // a rank that lives and does not compute has sent what others waited for.
  const auto blameless = [this](const Root& root) {
    return std::all_of(root.begin(), root.end(), [this](int rank) {
      const Node& node = nodes_[rank];
      return !node.lost && node.answer && !node.answer->busy;
    });
  };
  if (any_lost_) {
    roots.erase(std::remove_if(roots.begin(), roots.end(), blameless),
                roots.end());
  }
  std::vector<bool> is_root(nodes_.size());
  for (const Root& root : roots) {
    for (int rank : root) is_root[rank] = true;
  }
  std::vector<std::string> lines = {waits && roots.empty()
                                        ? "what ranks waited for was on its way"
                                        : RootsText(roots)};
  for (auto& more : {WaitLines(is_root), StateLines(is_root)}) {
    lines.insert(lines.end(), more.begin(), more.end());
  }
  if (lines.size() > kLinesMax) {
    const std::size_t left_out = lines.size() - (kLinesMax - 1);
    lines.resize(kLinesMax - 1);
    lines.push_back(absl::StrCat("and ", left_out, " more such lines"));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace troupe::actors
