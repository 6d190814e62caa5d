// Timeline of one recorded step: the bars that each rank ran, and the rest of
// its time split into waiting and exposed communication.
//
//   const RunTimeline timeline(trace, shape);
//   for (std::int64_t step : timeline.steps()) {
//     const StepTimeline at = timeline.Step(step);
//     at.ranks[0].spans;                          // cover the whole step
//     at.Share(SpanKind::kExposed);               // 0.07
//   }
//
// A step lasts from the begin of its first bar to the end of its last, over all
// ranks. Each moment of each rank in it has one SpanKind. While the compute
// strand of a rank runs nothing, its time is
// - exposed communication, while one of its collectives runs that all of its
// ranks have launched;
// - waiting otherwise, classified by the next bar: for an activation or a
// gradient of another stage, for ranks that are late for a reduction, for a
// batch of the loader, or for the end of the step.
//
// Collectives that run on the compute strand are exposed as a whole.
//
// If bars are nested (an update in the middle of a backward), the inner one
// counts. Cost: n log n in the bars.

#ifndef TOOLS_REPORT_STEP_TIMELINE_H_
#define TOOLS_REPORT_STEP_TIMELINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "tools/report/run_shape.h"
#include "tools/report/trace_reader.h"

namespace troupe::tools {

enum class SpanKind {
  kForward,
  kBackward,  // a whole backward, or either half of one
  kUpdate,
  kTransfer,  // a send to another stage, or a receive
  kGraph,     // a recorded step, launched as a whole
  kExposed,   // communication that no computation overlaps
  kWaitActivation,
  kWaitGradient,
  kWaitPeers,  // waiting for ranks that have not launched the same collective
  kWaitData,
  kWaitEnd,    // this rank has finished the step, other ranks have not
  kWaitOther,  // between actions: messages, or the engine's own work
};
inline constexpr int kSpanKinds = static_cast<int>(SpanKind::kWaitOther) + 1;

// An interval of a rank's time, of one kind.
struct Span {
  SpanKind kind = SpanKind::kWaitOther;
  double begin = 0, end = 0;
};

struct RankTimeline {
  std::vector<Bar> compute;  // actions of this step, sorted by begin
  std::vector<Bar> comm;     // collectives of this step, sorted by begin
  std::vector<Bar> others;   // actions of other steps that overlap this one
  // Consecutive spans without gaps, from the step's begin to its end.
  std::vector<Span> spans;
};

struct StepTimeline {
  std::int64_t step = 0;
  double begin = 0, end = 0;
  std::vector<RankTimeline> ranks;

  double length() const { return end - begin; }
  // Returns the fraction of the time of all ranks spent in `kind`, 0 to 1.
  double Share(SpanKind kind) const;
};

class RunTimeline {
 public:
  // The plan must have the bars' ranks and chunks. `shape` must outlive this.
  RunTimeline(const RunTrace& trace, const RunShape& shape);

  // Returns the numbers of the recorded steps, ascending.
  const std::vector<std::int64_t>& steps() const { return steps_; }
  StepTimeline Step(std::int64_t step) const;

  // Returns when the last of a collective's ranks launched it; at most the
  // collective's end.
  double LastLaunch(const Bar& collective) const;
  // Returns when the bar's own rank launched it; none if that is not recorded.
  std::optional<double> LaunchOf(const Bar& collective) const;

 private:
  struct RankBars {
    // Bars of all steps; `compute` and `comm` are sorted by begin.
    std::vector<Bar> compute, comm, loads;
    // Times when a collective runs that all of its ranks have launched:
    // ascending, without overlaps.
    std::vector<Span> wires;
  };
  // Step, kind, chunk, bucket, rank.
  using CommKey = std::tuple<std::int64_t, int, int, int, int>;

  // Returns the bars of all steps that overlap [begin, end) on the rank's
  // compute strand.
  std::vector<const Bar*> BarsOn(int rank, double begin, double end) const;
  std::vector<Span> SpansOf(int rank, std::int64_t step, double begin,
                            double end) const;
  void FillGap(int rank, std::int64_t step, const Bar* next, double begin,
               double end, std::vector<Span>& spans) const;
  SpanKind CauseOf(int rank, std::int64_t step, const Bar* next, double begin,
                   double end) const;

  const RunShape& shape_;
  std::vector<std::int64_t> steps_;
  std::vector<RankBars> ranks_;
  std::map<CommKey, double> launches_;
};

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_STEP_TIMELINE_H_
