// Records the events between steps in a trace: evaluations, the parts of a
// checkpoint.
//
//   const BoundaryTrace trace(spec.trace, span, rank, TraceTrack::kRank);
//   trace.Note(TraceKind::kEvaluation, TracePhase::kBegin, step, "evaluate");
//
// `step` is the number of committed steps. An event is shown with the last of
// them, and not at all if the run has trained none.
//
// Threads: the same as the sink's.

#ifndef ACTORS_STRANDS_BOUNDARY_TRACE_H_
#define ACTORS_STRANDS_BOUNDARY_TRACE_H_

#include <cstdint>

#include "actors/setup/run_span.h"
#include "actors/tracing/trace.h"

namespace troupe::actors {

class BoundaryTrace {
 public:
  // `sink` may be null, and outlives it.
  BoundaryTrace(TraceSink* sink, const RunSpan& span, int rank,
                TraceTrack track)
      : sink_(sink), first_step_(span.first_step), rank_(rank), track_(track) {}

  void Note(TraceKind kind, TracePhase phase, std::int64_t step,
            const char* name) const {
    if (step <= first_step_) return;
    TraceEvent event;
    event.rank = rank_;
    event.track = track_;
    event.kind = kind;
    event.phase = phase;
    event.step = step - 1;
    event.name = name;
    actors::Note(sink_, event);
  }

 private:
  TraceSink* sink_;
  std::int64_t first_step_;
  int rank_;
  TraceTrack track_;
};

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_BOUNDARY_TRACE_H_
