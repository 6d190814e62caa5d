#include "tests/pipeline/all_orders.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/table/action_rules.h"
#include "tests/pipeline/rank_states.h"

namespace troupe::pipeline {
namespace {

// An action of another rank that must start before one of this rank ends: a
// send, or a partner in a collective.
struct Partner {
  int rank = 0;
  int action = 0;
};

class Search {
 public:
  Search(const Mesh& mesh, const std::vector<StepTable>& tables,
         const Placement& placement, const std::vector<int>& bounds)
      : bits_(64 / static_cast<int>(tables.size())) {
    for (std::size_t r = 0; r < tables.size(); ++r) {
      const int rank = static_cast<int>(r);
      std::vector<bool> has_peers;
      for (const Action& action : tables[r].actions) {
        has_peers.push_back(IsCollective(action.kind) &&
                            mesh.Group(rank, GroupOf(action)).size() > 1);
      }
      ranks_.emplace_back(tables[r], bounds[r], std::move(has_peers));
      partners_.emplace_back(tables[r].actions.size());
      external_.emplace_back();
      here_.push_back(0);
    }
    found_.activations_max.resize(tables.size());
    for (int r = 0; r < static_cast<int>(tables.size()); ++r) {
      for (int id = 0; id < static_cast<int>(tables[r].actions.size()); ++id) {
        FindPartners(mesh, placement, r, id);
      }
    }
  }

  AllOrders Run() {
    if (found_.error.empty()) Add(-1);
    for (std::size_t at = 0; at < ways_.size() && found_.error.empty(); ++at) {
      Look(static_cast<int>(at));
    }
    found_.states = static_cast<std::int64_t>(ways_.size());
    return std::move(found_);
  }

 private:
  // A state of all ranks: the packed numbers of the ranks' states.
  struct Way {
    std::uint64_t state = 0;
    int before = -1;
  };

  const Action& ActionOf(int rank, int id) const {
    return ranks_[rank].table().actions[id];
  }

  void FindPartners(const Mesh& mesh, const Placement& placement, int r,
                    int id) {
    const Action& action = ActionOf(r, id);
    if (IsReceive(action.kind)) {
      const bool forward = action.kind == ActionKind::kRecvActivation;
      const std::vector<int> stages =
          StagesAt(placement, mesh.CoordOf(r, kPpAxis));
      const StagePlace& from =
          placement[stages[action.chunk] + (forward ? -1 : 1)];
      AddPartner(
          r, id, mesh.RankWith(r, kPpAxis, from.pp),
          {forward ? ActionKind::kSendActivation : ActionKind::kSendGradient,
           action.index,
           {},
           from.chunk});
    } else if (IsCollective(action.kind)) {
      for (int other : mesh.Group(r, GroupOf(action))) {
        AddPartner(r, id, other, action);
      }
    } else {
      return;
    }
    external_[r].push_back(id);
  }

  void AddPartner(int r, int id, int other, const Action& action) {
    const StepTable& table = ranks_[other].table();
    const int found = table.Find(action.kind, action.index, action.chunk);
    if (found < 0) {
      found_.error = absl::StrCat("rank ", r, ": ",
                                  ActionOf(r, id).ToString(table.chunks()),
                                  " has no partner on rank ", other);
      return;
    }
    partners_[r][id].push_back({other, found});
  }

  // Adds the state here_, reached from state `before`, unless it is known.
  void Add(int before) {
    std::uint64_t packed = 0;
    for (std::size_t r = 0; r < here_.size(); ++r) {
      TROUPE_CHECK(here_[r] < (1 << std::min(bits_, 30)),
                   "a rank's state fits into its bits");
      packed |= static_cast<std::uint64_t>(here_[r])
                << (bits_ * static_cast<int>(r));
    }
    if (seen_.insert(packed).second) ways_.push_back({packed, before});
  }

  void Unpack(std::uint64_t packed) {
    for (std::size_t r = 0; r < here_.size(); ++r) {
      const std::uint64_t part = packed >> (bits_ * static_cast<int>(r));
      here_[r] =
          static_cast<int>(bits_ == 64 ? part : part & ((1ull << bits_) - 1));
    }
  }

  // Returns whether `id` has not ended and, as a collective, has started, and
  // all actions of other ranks that its end waits for have started.
  bool MayEnd(int r, int id) const {
    const RankStates::State& state = ranks_[r].at(here_[r]);
    if (((state.done >> id) & 1) != 0) return false;
    if (IsCollective(ActionOf(r, id).kind) &&
        ((state.started >> id) & 1) == 0) {
      return false;
    }
    for (const Partner& partner : partners_[r][id]) {
      const std::uint64_t theirs =
          ranks_[partner.rank].at(here_[partner.rank]).started;
      if (((theirs >> partner.action) & 1) == 0) return false;
    }
    return true;
  }

  void Look(int way) {
    Unpack(ways_[way].state);
    bool any = false;
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      const RankStates::State& state = ranks_[r].at(here_[r]);
      found_.activations_max[r] =
          std::max(found_.activations_max[r], state.alive);
      const int offered = state.offered;
      const int computing = state.computing;
      if (offered >= 0) any |= Go(way, r, {RankEvent::kStart, offered});
      if (ranks_[r].HasBuckets(here_[r])) {
        any |= Go(way, r, {RankEvent::kBuckets, computing});
      } else if (computing >= 0) {
        any |= Go(way, r, {RankEvent::kEnd, computing});
      }
      for (const int id : external_[r]) {
        if (MayEnd(r, id)) any |= Go(way, r, {RankEvent::kEnd, id});
      }
    }
    if (!any && found_.error.empty()) CheckEnd(way);
  }

  bool Go(int way, int r, const RankEvent& event) {
    if (!found_.error.empty()) return true;
    const int here = here_[r];
    const int next = ranks_[r].After(here, event);
    if (next < 0) {
      found_.error =
          absl::StrCat("rank ", r, ": ", ranks_[r].error(), WayTo(way));
      return true;
    }
    here_[r] = next;
    Add(way);
    here_[r] = here;
    return true;
  }

  void CheckEnd(int way) {
    std::string left;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].IsComplete(here_[r])) continue;
      absl::StrAppend(&left, left.empty() ? "" : ", ", "rank ", r, " has left ",
                      ranks_[r].Unfinished(here_[r]));
    }
    if (!left.empty()) found_.error = absl::StrCat(left, WayTo(way));
  }

  // The path is the shortest, since states are visited in the order found.
  std::string WayTo(int way) {
    std::vector<std::string> words;
    for (int at = way; ways_[at].before >= 0; at = ways_[at].before) {
      words.push_back(Between(ways_[ways_[at].before].state, ways_[at].state));
    }
    std::string text = ", after:";
    for (auto word = words.rbegin(); word != words.rend(); ++word) {
      absl::StrAppend(&text, " ", *word);
    }
    return text;
  }

  // Returns "0:F0": the rank that has moved on, and its event.
  std::string Between(std::uint64_t from, std::uint64_t to) {
    Unpack(to);
    const std::vector<int> there = here_;
    Unpack(from);
    for (std::size_t r = 0; r < here_.size(); ++r) {
      if (here_[r] == there[r]) continue;
      return absl::StrCat(r, ":", ranks_[r].EventBetween(here_[r], there[r]));
    }
    return "";
  }

  const int bits_;  // bits of a rank's state in the state of all ranks
  std::vector<RankStates> ranks_;
  // Per rank and action: the actions that must have started before it ends.
  std::vector<std::vector<std::vector<Partner>>> partners_;
  // Per rank: receives and collectives.
  std::vector<std::vector<int>> external_;
  std::vector<int> here_;  // per rank: the state that is visited
  std::vector<Way> ways_;  // all states, indexed by number
  absl::flat_hash_set<std::uint64_t> seen_;
  AllOrders found_;
};

}  // namespace

AllOrders TryAllOrders(const Mesh& mesh, const std::vector<StepTable>& tables,
                       const Placement& placement,
                       const std::vector<int>& bounds) {
  return Search(mesh, tables, placement, bounds).Run();
}

}  // namespace troupe::pipeline
