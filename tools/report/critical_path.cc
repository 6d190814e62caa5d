#include "tools/report/critical_path.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "pipeline/table/action_rules.h"

namespace troupe::tools {
namespace {

class PathFinder {
 public:
  PathFinder(const StepTimeline& step, const RunTimeline& run,
             const RunShape& shape)
      : run_(run), shape_(shape), lines_(step.ranks.size()) {
    for (std::size_t r = 0; r < step.ranks.size(); ++r) {
      const RankTimeline& rank = step.ranks[r];
      std::vector<Bar> bars = rank.compute;
      // Collectives on the compute strand are part of its line.
      if (shape.ReducesInline(static_cast<int>(r))) {
        bars.insert(bars.end(), rank.comm.begin(), rank.comm.end());
        std::stable_sort(
            bars.begin(), bars.end(), [](const Bar& a, const Bar& b) {
              return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
            });
      } else {
        comm_.emplace(static_cast<int>(r), rank.comm);
      }
      for (const Bar& bar : bars) AddToLine(bar);
    }
  }

  std::vector<PathPart> Find() {
    std::vector<PathPart> path;
    const Bar* at = Last();
    double end = at == nullptr ? 0 : at->end;
    while (at != nullptr) {
      const bool reduces = at->track == BarTrack::kComm;
      const double begin =
          reduces ? std::min(run_.LastLaunch(*at), end) : at->begin;
      path.push_back({*at, begin, end, 0});
      const Cause cause = CauseOf(*at, begin);
      path.back().handover = cause.bar == nullptr ? 0 : begin - cause.end;
      at = cause.bar;
      end = cause.end;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  // The bar that another one waited for, and until when.
  struct Cause {
    const Bar* bar = nullptr;
    double end = 0;
  };
  // Rank, chunk, micro-batch, whether forward.
  using Key = std::tuple<int, int, int, bool>;

  // Appends a bar to its rank's line, unless it is nested in the last one.
  void AddToLine(const Bar& bar) {
    std::vector<Bar>& line = lines_[bar.rank];
    if (!line.empty() && bar.begin < line.back().end) return;
    const std::optional<bool> forward = PassesForward(bar.kind);
    if (bar.track == BarTrack::kCompute && !bar.is_graph && forward &&
        !pipeline::IsReceive(bar.kind)) {
      makers_[{bar.rank, bar.chunk, bar.index, *forward}] = line.size();
    }
    line.push_back(bar);
  }

  const Bar* Last() const {
    const Bar* last = nullptr;
    const auto look = [&](const std::vector<Bar>& bars) {
      for (const Bar& bar : bars) {
        if (last == nullptr || bar.end > last->end) last = &bar;
      }
    };
    for (const std::vector<Bar>& line : lines_) look(line);
    for (const auto& [rank, bars] : comm_) look(bars);
    return last;
  }

  // Returns the last bar of a rank that begins before `time`.
  Cause Before(int rank, double time) const {
    const std::vector<Bar>& line = lines_[rank];
    const auto after = std::lower_bound(
        line.begin(), line.end(), time,
        [](const Bar& bar, double t) { return bar.begin < t; });
    if (after == line.begin()) return {};
    return {&*(after - 1), std::min((after - 1)->end, time)};
  }

  Cause CauseOf(const Bar& bar, double begin) const {
    if (bar.track == BarTrack::kComm) return Before(LastRankOf(bar), begin);
    Cause cause = Before(bar.rank, begin);
    const auto consider = [&](const Bar& other) {
      const double end = std::min(other.end, begin);
      if (other.begin >= begin) return;
      if (cause.bar == nullptr || end > cause.end) cause = {&other, end};
    };
    if (const auto input = shape_.InputOf(bar)) {
      const auto maker =
          makers_.find({input->rank, input->chunk, bar.index, input->forward});
      if (maker != makers_.end()) {
        consider(lines_[input->rank][maker->second]);
      }
    }
    if (pipeline::RuleOf(bar.kind).role == pipeline::ActionRole::kUpdate) {
      const auto comm = comm_.find(bar.rank);
      if (comm != comm_.end()) {
        for (const Bar& collective : comm->second) {
          if (collective.end <= begin) consider(collective);
        }
      }
    }
    return cause;
  }

  // Returns the rank that launched a collective last.
  int LastRankOf(const Bar& bar) const {
    const double launch = run_.LastLaunch(bar);
    for (const Bar& part : shape_.PartsOf(bar)) {
      if (run_.LaunchOf(part) == launch) return part.rank;
    }
    return bar.rank;
  }

  const RunTimeline& run_;
  const RunShape& shape_;
  std::vector<std::vector<Bar>> lines_;   // outer bars by rank, by begin
  std::map<int, std::vector<Bar>> comm_;  // by rank, if not on its line
  std::map<Key, std::size_t> makers_;     // indices into lines_[rank]
};

}  // namespace

std::vector<PathPart> CriticalPath(const StepTimeline& step,
                                   const RunTimeline& run,
                                   const RunShape& shape) {
  return PathFinder(step, run, shape).Find();
}

}  // namespace troupe::tools
