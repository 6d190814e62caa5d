// One recorded step: which bars each rank ran, and how the rest of its time
// went, waiting told apart from communication.
//
//   const RunTimeline timeline(trace, shape);
//   for (std::int64_t step : timeline.steps()) {
//     const StepTimeline at = timeline.Step(step);
//     at.ranks[0].spans;                          // without a gap
//     at.Share(SpanKind::kExposed);               // 0.07
//   }
//
// A step lasts from the begin of its first bar to the end of its last, on any
// rank. Each moment of each rank in it is of one kind. Where the compute strand
// runs nothing, it is
// - exposed communication, while a collective of the rank is under way that all
// of its ranks have launched;
// - waiting otherwise, by what comes next: an activation or a gradient of
// another stage, a reduction for which others are late, a batch of the loader,
// or nothing more in this step.
//
// Collectives that the compute strand runs itself are never hidden.
//
// Where bars lie within each other (an update in the middle of a backward), the
// inner one counts. Cost: n log n in the bars.

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
  kBackward,  // whole or either half
  kUpdate,
  kTransfer,  // handing over to another stage, and taking
  kGraph,
  kExposed,  // communication under no computation
  kWaitActivation,
  kWaitGradient,
  kWaitPeers,  // for ranks that have not launched the same collective
  kWaitData,
  kWaitEnd,    // this rank has done all, others have not
  kWaitOther,  // between actions: messages, the engine itself
};
inline constexpr int kSpanKinds = static_cast<int>(SpanKind::kWaitOther) + 1;

// A part of a rank's time.
struct Span {
  SpanKind kind = SpanKind::kWaitOther;
  double begin = 0, end = 0;
};

struct RankTimeline {
  std::vector<Bar> compute;  // of this step, by begin
  std::vector<Bar> comm;     // of this step, by begin
  std::vector<Bar> others;   // of the steps beside it, on the compute strand
  // Without a gap, from the step's begin to its end.
  std::vector<Span> spans;
};

struct StepTimeline {
  std::int64_t step = 0;
  double begin = 0, end = 0;
  std::vector<RankTimeline> ranks;

  double length() const { return end - begin; }
  // Part of the time of all ranks, 0 to 1.
  double Share(SpanKind kind) const;
};

class RunTimeline {
 public:
  // The bars' ranks and chunks are in the plan. `shape` outlives it.
  RunTimeline(const RunTrace& trace, const RunShape& shape);

  // Those that were recorded, ascending.
  const std::vector<std::int64_t>& steps() const { return steps_; }
  StepTimeline Step(std::int64_t step) const;

  // When the last of a collective's ranks launched it.
  double LastLaunch(const Bar& collective) const;
  // When the collective's own rank did; none: it is not recorded.
  std::optional<double> LaunchOf(const Bar& collective) const;

 private:
  struct RankBars {
    std::vector<Bar> compute, comm, loads;  // of all steps, by begin
    // When collectives are under way that all have launched: ascending, and
    // none overlaps the next.
    std::vector<Span> wires;
  };
  // Step, kind, chunk, bucket, rank.
  using CommKey = std::tuple<std::int64_t, int, int, int, int>;

  // What runs on the rank's compute strand then, of whichever step.
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
