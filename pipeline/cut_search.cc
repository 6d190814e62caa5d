#include "pipeline/cut_search.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/format_bytes.h"
#include "pipeline/table/action_rules.h"

namespace troupe::pipeline {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Objective of the search: first the busiest rank, then the largest stage.
struct Dearest {
  double rank = kInfinity;
  double stage = kInfinity;

  friend bool operator<(const Dearest& a, const Dearest& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.stage < b.stage;
  }
};

// Prefix sums, for sums over runs of units.
class Sums {
 public:
  template <typename Value>
  Sums(const std::vector<UnitCosts>& units, const Value& value) {
    before_.push_back(0);
    for (const UnitCosts& unit : units) {
      before_.push_back(before_.back() + value(unit));
    }
  }
  double Of(int begin, int end) const { return before_[end] - before_[begin]; }
  double all() const { return before_.back(); }

 private:
  std::vector<double> before_;
};

double StepSeconds(const UnitCosts& unit, int micro_batches) {
  const StageCosts& costs = unit.costs;
  return micro_batches * (costs.forward + costs.TimeOf(ActionKind::kBackward)) +
         costs.update;
}

// Positions in the model, one for each chunk of a rank. The chunks of a rank
// lie between the front before the rank and the front after it.
using Front = std::vector<int>;

class Search {
 public:
  Search(const ModelCosts& costs, const CutOptions& options, int pp, int chunks,
         bool is_v)
      : options_(options),
        units_(static_cast<int>(costs.units.size())),
        pp_(pp),
        chunks_(chunks),
        is_v_(is_v),
        seconds_(costs.units,
                 [&](const UnitCosts& unit) {
                   return StepSeconds(unit, options.micro_batches);
                 }),
        held_(costs.units,
              [](const UnitCosts& unit) { return unit.held_bytes; }),
        activations_(costs.units, [](const UnitCosts& unit) {
          return unit.costs.activation;
        }) {}

  // Minimizes the work of the busiest rank within `memory_limit`; or, if
  // `by_memory`, the largest memory of a rank. Returns the first units of all
  // stages but the first; empty: no cuts keep the limit.
  std::optional<std::vector<int>> Run(double memory_limit, bool by_memory) {
    memory_limit_ = memory_limit;
    by_memory_ = by_memory;
    const double all = by_memory
                           ? held_.all() + MostUnderWay() * activations_.all()
                           : seconds_.all();
    // The search finds all cuts within a bound, so the first bound with any
    // cuts has the best ones.
    constexpr double kGrowth = 1.2;
    for (bound_ = kGrowth * all / pp_; bound_ < all; bound_ *= kGrowth) {
      if (auto begins = WithinBound()) return begins;
    }
    bound_ = kInfinity;
    return WithinBound();
  }

  double SecondsOf(const std::vector<int>& begins, int pp) const {
    double sum = 0;
    ForStagesAt(begins, pp,
                [&](int, int b, int e) { sum += seconds_.Of(b, e); });
    return sum;
  }
  double BytesOf(const std::vector<int>& begins, int pp) const {
    double sum = 0;
    ForStagesAt(begins, pp,
                [&](int stage, int b, int e) { sum += Bytes(stage, b, e); });
    return sum;
  }

 private:
  struct Best {
    Dearest dearest;
    Front next;
  };

  int StageOf(int rank, int chunk) const {
    if (is_v_ && chunk == 1) return 2 * pp_ - 1 - rank;
    return rank + chunk * pp_;
  }
  int UnderWay(int stage) const {
    return options_.under_way.empty() ? 1 : options_.under_way[stage];
  }
  int MostUnderWay() const {
    int most = 1;
    for (const int m : options_.under_way) most = std::max(most, m);
    return most;
  }
  double Bytes(int stage, int begin, int end) const {
    return held_.Of(begin, end) + UnderWay(stage) * activations_.Of(begin, end);
  }

  template <typename Visit>
  void ForStagesAt(const std::vector<int>& begins, int pp,
                   const Visit& visit) const {
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      const int stage = StageOf(pp, chunk);
      const int begin = stage == 0 ? 0 : begins[stage - 1];
      const bool is_last = stage == static_cast<int>(begins.size());
      visit(stage, begin, is_last ? units_ : begins[stage]);
    }
  }

  std::optional<std::vector<int>> WithinBound() {
    best_ = Dearest();
    std::optional<std::vector<int>> found;
    Front start(chunks_, 0);
    if (is_v_) start[1] = units_;
    TryStarts(start, 1, found);
    return found;
  }

  // Tries all ways to divide a looped model among the chunks; a V has one way.
  void TryStarts(Front& start, int chunk,
                 std::optional<std::vector<int>>& found) {
    if (!is_v_ && chunk < chunks_) {
      const int least = start[chunk - 1] + pp_;
      for (int at = least; at + pp_ * (chunks_ - chunk) <= units_; ++at) {
        start[chunk] = at;
        TryStarts(start, chunk + 1, found);
      }
      return;
    }
    end_ = start;
    if (!is_v_) {
      std::rotate(end_.begin(), end_.begin() + 1, end_.end());
      end_.back() = units_;
    }
    known_.assign(pp_, {});
    const Dearest dearest = From(0, start);
    if (dearest.rank == kInfinity || !(dearest < best_)) return;
    best_ = dearest;
    bound_ = dearest.rank;  // prunes states above it
    found = BeginsFrom(start);
  }

  bool IsEnd(const Front& front) const {
    return is_v_ ? front[0] == front[1] : front == end_;
  }

  // Returns the least objective of the ranks from `rank` on, whose chunks begin
  // at `front`.
  Dearest From(int rank, const Front& front) {
    if (rank == pp_) {
      return IsEnd(front) ? Dearest{0, 0} : Dearest();
    }
    const auto known = known_[rank].find(front);
    if (known != known_[rank].end()) return known->second.dearest;
    Best best;
    Front next = front;
    Extend(rank, front, 0, {0, 0}, 0, next, best);
    known_[rank].emplace(front, best);
    return best.dearest;
  }

  // Tries all ends of the rank's chunks from `chunk` on; `so_far` and `bytes`
  // are the sums over the chunks before it.
  void Extend(int rank, const Front& front, int chunk, Dearest so_far,
              double bytes, Front& next, Best& best) {
    if (chunk == chunks_) {
      if (LeastLeft(next) > (pp_ - 1 - rank) * bound_) return;
      const Dearest rest = From(rank + 1, next);
      const Dearest all = {std::max(so_far.rank, rest.rank),
                           std::max(so_far.stage, rest.stage)};
      if (all.rank > bound_ || best.dearest < all) return;
      best = {all, next};
      return;
    }
    const bool backwards = is_v_ && chunk == 1;
    const int stage = StageOf(rank, chunk);
    for (int at = front[chunk];;) {
      at += backwards ? -1 : 1;
      // Each later rank takes at least one unit.
      const int left = pp_ - 1 - rank;
      if (backwards ? at < next[0] + 2 * left : at + left > LimitOf(chunk)) {
        return;
      }
      const int begin = std::min(at, front[chunk]);
      const int end = std::max(at, front[chunk]);
      const double with_bytes = bytes + Bytes(stage, begin, end);
      const double cost =
          by_memory_ ? Bytes(stage, begin, end) : seconds_.Of(begin, end);
      const Dearest with = {so_far.rank + cost, std::max(so_far.stage, cost)};
      if (with_bytes > memory_limit_ || with.rank > bound_) return;
      next[chunk] = at;
      Extend(rank, front, chunk + 1, with, with_bytes, next, best);
    }
  }

  // Returns a lower bound on the cost of the ranks whose chunks begin at
  // `front` or after it.
  double LeastLeft(const Front& front) const {
    const Sums& sums = by_memory_ ? held_ : seconds_;
    if (is_v_) return sums.Of(front[0], front[1]);
    double left = 0;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      left += sums.Of(front[chunk], end_[chunk]);
    }
    return left;
  }

  // Returns the end of the units that the chunk may take.
  int LimitOf(int chunk) const { return is_v_ ? units_ : end_[chunk]; }

  std::vector<int> BeginsFrom(Front front) {
    std::vector<int> begins(static_cast<std::size_t>(pp_) * chunks_);
    for (int rank = 0; rank < pp_; ++rank) {
      const Front next = known_[rank].at(front).next;
      for (int chunk = 0; chunk < chunks_; ++chunk) {
        begins[StageOf(rank, chunk)] = std::min(front[chunk], next[chunk]);
      }
      front = next;
    }
    begins.erase(begins.begin());
    return begins;
  }

  const CutOptions& options_;
  const int units_, pp_, chunks_;
  const bool is_v_;
  const Sums seconds_, held_, activations_;
  double memory_limit_ = kInfinity;
  bool by_memory_ = false;
  double bound_ = kInfinity;
  Dearest best_;
  Front end_;
  std::vector<absl::flat_hash_map<Front, Best>> known_;  // indexed by rank
};

// Returns the number of ranks that a placement has stages for.
int RanksOf(const Placement& placement) {
  int pp = 0;
  for (const StagePlace& place : placement) pp = std::max(pp, place.pp + 1);
  return pp;
}

std::string Bytes(double bytes) {
  return base::FormatBytes(static_cast<std::uint64_t>(bytes));
}

// Returns an error if no cuts keep the limit.
absl::Status CheckFits(Search& search, int pp, double limit) {
  if (limit == kInfinity) return absl::OkStatus();
  const auto begins = search.Run(kInfinity, /*by_memory=*/true);
  TROUPE_CHECK(begins.has_value(), "without a limit there are cuts");
  int fullest = 0;
  for (int rank = 1; rank < pp; ++rank) {
    if (search.BytesOf(*begins, rank) > search.BytesOf(*begins, fullest)) {
      fullest = rank;
    }
  }
  const double least = search.BytesOf(*begins, fullest);
  if (least <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "no cuts keep what a rank holds within ", Bytes(limit), ": at best, pp ",
      fullest, " holds ", Bytes(least), ", which is ", Bytes(least - limit),
      " more; raise the limit, or take more stages"));
}

}  // namespace

absl::StatusOr<FoundCuts> FindCuts(const ModelCosts& costs,
                                   const CutOptions& options) {
  const int stages = static_cast<int>(options.placement.size());
  if (static_cast<int>(costs.units.size()) < stages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has ", costs.units.size(),
        " layers in Sequentials, too few for ", stages, " stages; take fewer"));
  }
  const int pp = RanksOf(options.placement);
  TROUPE_RETURN_IF_ERROR(CheckPlacement(options.placement, pp));
  const int chunks = pp == 0 ? 0 : stages / pp;
  const bool is_looped = options.placement == LoopedPlacement(pp, chunks);
  if (stages == 0 || (!is_looped && options.placement != VPlacement(pp))) {
    return absl::InvalidArgumentError(
        "CutOptions.placement must be a LoopedPlacement() or a "
        "VPlacement(); give the cuts of others by hand");
  }
  Search search(costs, options, pp, chunks, !is_looped);
  TROUPE_RETURN_IF_ERROR(CheckFits(search, pp, options.memory_limit));
  const auto begins = search.Run(options.memory_limit, /*by_memory=*/false);
  TROUPE_CHECK(begins.has_value(), "some cuts keep the limit");
  FoundCuts found;
  for (const int i : *begins) found.cuts.emplace_back(costs.units[i].path);
  for (int rank = 0; rank < pp; ++rank) {
    found.rank_seconds =
        std::max(found.rank_seconds, search.SecondsOf(*begins, rank));
    found.rank_bytes =
        std::max(found.rank_bytes, search.BytesOf(*begins, rank));
  }
  return found;
}

std::vector<int> MostUnderWay(const std::vector<StepTable>& tables,
                              const Placement& placement) {
  std::vector<int> most;
  for (const StagePlace& place : placement) {
    int now = 0;
    most.push_back(0);
    for (const Action& action : tables[place.pp].actions) {
      if (action.chunk != place.chunk) continue;
      now += action.kind == ActionKind::kForward;
      most.back() = std::max(most.back(), now);
      now -= EndsBackward(action.kind);
    }
  }
  return most;
}

StepCosts CostsOfStages(const ModelCosts& costs,
                        absl::Span<const std::string> begins) {
  StepCosts sums;
  sums.transfer = costs.transfer;
  std::size_t next = 0;
  for (const UnitCosts& unit : costs.units) {
    // A place has the path of the innermost module, a cut that of any module
    // that begins there.
    const bool begins_here =
        next < begins.size() &&
        (unit.path == begins[next] ||
         absl::StartsWith(unit.path, absl::StrCat(begins[next], ".")));
    if (sums.stages.empty() || begins_here) {
      next += begins_here;
      sums.stages.push_back({0, 0, 0, 0, /*backward=*/0});
    }
    StageCosts& stage = sums.stages.back();
    stage.forward += unit.costs.forward;
    stage.inputs += unit.costs.inputs;
    stage.weights += unit.costs.weights;
    stage.backward += unit.costs.TimeOf(ActionKind::kBackward);
    stage.forward_sums += unit.costs.forward_sums;
    stage.backward_sums += unit.costs.backward_sums;
    stage.activation += unit.costs.activation;
    stage.update += unit.costs.update;
    stage.held += unit.held_bytes;
  }
  return sums;
}

}  // namespace troupe::pipeline
