#include "tools/report/step_timeline.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pipeline/table/action_rules.h"

namespace troupe::tools {
namespace {

using pipeline::ActionRole;

SpanKind SpanKindOf(const Bar& bar) {
  if (bar.is_graph) return SpanKind::kGraph;
  switch (pipeline::RuleOf(bar.kind).role) {
    case ActionRole::kCompute:
      return pipeline::IsOfForward(bar.kind) ? SpanKind::kForward
                                             : SpanKind::kBackward;
    case ActionRole::kUpdate:
      return SpanKind::kUpdate;
    case ActionRole::kReceive:
    case ActionRole::kSend:
    case ActionRole::kCollective:
      break;
  }
  return SpanKind::kTransfer;
}

// Appends a span, or extends the last one if it is of the same kind and ends at
// `begin`. Ignores empty spans.
void Append(SpanKind kind, double begin, double end, std::vector<Span>& spans) {
  if (end <= begin) return;
  if (!spans.empty() && spans.back().kind == kind &&
      spans.back().end == begin) {
    spans.back().end = end;
    return;
  }
  spans.push_back({kind, begin, end});
}

// Orders bars by begin, outer bars before those nested in them.
bool IsBefore(const Bar& a, const Bar& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
}

bool Overlaps(const Bar& bar, double begin, double end) {
  return bar.begin < end && bar.end > begin;
}

}  // namespace

double StepTimeline::Share(SpanKind kind) const {
  if (length() <= 0 || ranks.empty()) return 0;
  double time = 0;
  for (const RankTimeline& rank : ranks) {
    for (const Span& span : rank.spans) {
      if (span.kind == kind) time += span.end - span.begin;
    }
  }
  return time / (length() * static_cast<double>(ranks.size()));
}

RunTimeline::RunTimeline(const RunTrace& trace, const RunShape& shape)
    : shape_(shape), ranks_(shape.ranks()) {
  std::set<std::int64_t> steps;
  for (const Bar& bar : trace.bars) {
    RankBars& rank = ranks_[bar.rank];
    if (bar.track == BarTrack::kLoad) {
      rank.loads.push_back(bar);
      continue;
    }
    steps.insert(bar.step);
    if (bar.track == BarTrack::kCompute) {
      rank.compute.push_back(bar);
      continue;
    }
    rank.comm.push_back(bar);
    launches_[{bar.step, static_cast<int>(bar.kind), bar.chunk, bar.index,
               bar.rank}] = bar.begin;
  }
  steps_.assign(steps.begin(), steps.end());
  for (RankBars& rank : ranks_) {
    std::stable_sort(rank.compute.begin(), rank.compute.end(), IsBefore);
    std::stable_sort(rank.comm.begin(), rank.comm.end(), IsBefore);
  }
  for (RankBars& rank : ranks_) {
    std::vector<Span> wires;
    for (const Bar& bar : rank.comm) {
      wires.push_back({SpanKind::kExposed, LastLaunch(bar), bar.end});
    }
    std::sort(wires.begin(), wires.end(),
              [](const Span& a, const Span& b) { return a.begin < b.begin; });
    double until = 0;
    for (const Span& wire : wires) {
      Append(SpanKind::kExposed, std::max(wire.begin, until), wire.end,
             rank.wires);
      until = std::max(until, wire.end);
    }
  }
}

std::optional<double> RunTimeline::LaunchOf(const Bar& collective) const {
  const auto found =
      launches_.find({collective.step, static_cast<int>(collective.kind),
                      collective.chunk, collective.index, collective.rank});
  if (found == launches_.end()) return std::nullopt;
  return found->second;
}

double RunTimeline::LastLaunch(const Bar& collective) const {
  double last = collective.begin;
  for (const Bar& part : shape_.PartsOf(collective)) {
    if (const auto launch = LaunchOf(part)) last = std::max(last, *launch);
  }
  // Other hosts' clocks may be ahead.
  return std::min(last, collective.end);
}

StepTimeline RunTimeline::Step(std::int64_t step) const {
  StepTimeline timeline;
  timeline.step = step;
  timeline.ranks.resize(ranks_.size());
  bool any = false;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto take = [&](const std::vector<Bar>& from, std::vector<Bar>& to) {
      for (const Bar& bar : from) {
        if (bar.step != step) continue;
        to.push_back(bar);
        timeline.begin = any ? std::min(timeline.begin, bar.begin) : bar.begin;
        timeline.end = any ? std::max(timeline.end, bar.end) : bar.end;
        any = true;
      }
    };
    take(ranks_[r].compute, timeline.ranks[r].compute);
    take(ranks_[r].comm, timeline.ranks[r].comm);
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankTimeline& rank = timeline.ranks[r];
    for (const Bar& bar : ranks_[r].compute) {
      const bool is_beside =
          bar.step != step && Overlaps(bar, timeline.begin, timeline.end);
      if (is_beside) rank.others.push_back(bar);
    }
    rank.spans =
        SpansOf(static_cast<int>(r), step, timeline.begin, timeline.end);
  }
  return timeline;
}

std::vector<const Bar*> RunTimeline::BarsOn(int rank, double begin,
                                            double end) const {
  std::vector<const Bar*> bars;
  for (const Bar& bar : ranks_[rank].compute) {
    if (Overlaps(bar, begin, end)) bars.push_back(&bar);
  }
  if (shape_.ReducesInline(rank)) {
    for (const Bar& bar : ranks_[rank].comm) {
      if (Overlaps(bar, begin, end)) bars.push_back(&bar);
    }
    std::stable_sort(bars.begin(), bars.end(), [](const Bar* a, const Bar* b) {
      return IsBefore(*a, *b);
    });
  }
  return bars;
}

std::vector<Span> RunTimeline::SpansOf(int rank, std::int64_t step,
                                       double begin, double end) const {
  std::vector<Span> spans;
  std::vector<const Bar*> open;  // nested bars, the innermost last
  double at = begin;
  const auto run_until = [&](double time) {
    const Bar& bar = *open.back();
    if (time <= at) return;
    if (bar.track == BarTrack::kComm) {
      const double launched = std::clamp(LastLaunch(bar), at, time);
      Append(SpanKind::kWaitPeers, at, launched, spans);
      Append(SpanKind::kExposed, launched, time, spans);
    } else {
      Append(SpanKindOf(bar), at, time, spans);
    }
    at = time;
  };
  const auto close_until = [&](double time) {
    while (!open.empty() && open.back()->end <= time) {
      run_until(std::min(open.back()->end, end));
      open.pop_back();
    }
  };
  for (const Bar* bar : BarsOn(rank, begin, end)) {
    close_until(bar->begin);
    if (!open.empty()) {
      run_until(bar->begin);
    } else if (bar->begin > at) {
      FillGap(rank, step, bar, at, bar->begin, spans);
      at = bar->begin;
    }
    open.push_back(bar);
  }
  while (!open.empty()) {
    run_until(std::min(open.back()->end, end));
    open.pop_back();
  }
  FillGap(rank, step, nullptr, at, end, spans);
  return spans;
}

void RunTimeline::FillGap(int rank, std::int64_t step, const Bar* next,
                          double begin, double end,
                          std::vector<Span>& spans) const {
  const std::vector<Span>& wires = ranks_[rank].wires;
  auto wire = std::lower_bound(
      wires.begin(), wires.end(), begin,
      [](const Span& span, double t) { return span.end <= t; });
  double at = begin;
  for (; wire != wires.end() && wire->begin < end; ++wire) {
    const double exposed = std::max(wire->begin, at);
    Append(CauseOf(rank, step, next, at, exposed), at, exposed, spans);
    at = std::min(wire->end, end);
    Append(SpanKind::kExposed, exposed, at, spans);
  }
  Append(CauseOf(rank, step, next, at, end), at, end, spans);
}

SpanKind RunTimeline::CauseOf(int rank, std::int64_t step, const Bar* next,
                              double begin, double end) const {
  const auto any = [&](const std::vector<Bar>& bars) {
    return std::any_of(bars.begin(), bars.end(), [&](const Bar& bar) {
      return bar.step == step && Overlaps(bar, begin, end);
    });
  };
  if (next == nullptr || next->step > step) {
    return any(ranks_[rank].comm) ? SpanKind::kWaitPeers : SpanKind::kWaitEnd;
  }
  if (next->is_graph) return SpanKind::kWaitOther;
  const ActionRole role = pipeline::RuleOf(next->kind).role;
  if (role == ActionRole::kUpdate || next->track == BarTrack::kComm) {
    return any(ranks_[rank].comm) ? SpanKind::kWaitPeers : SpanKind::kWaitOther;
  }
  const bool forward = pipeline::IsOfForward(next->kind);
  if (role == ActionRole::kReceive) {
    return forward ? SpanKind::kWaitActivation : SpanKind::kWaitGradient;
  }
  if (const auto input = shape_.InputOf(*next)) {
    return input->forward ? SpanKind::kWaitActivation : SpanKind::kWaitGradient;
  }
  const bool loads =
      role == ActionRole::kCompute && forward && any(ranks_[rank].loads);
  return loads ? SpanKind::kWaitData : SpanKind::kWaitOther;
}

}  // namespace troupe::tools
