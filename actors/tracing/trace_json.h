// Events as Chrome's trace event format, the way Perfetto's importer reads it:
// a process per rank and a track per strand.
//
//   std::vector<StampedEvent> events = {{event, /*micros=*/12.5}};
//   std::string json = TraceJson(events, /*dropped=*/0);
//
// Arrows lead from a bucket's readiness to its reduction and on to its update,
// and from a send of one stage to the receive of the next. The importer draws
// an arrow only between slices that are open on the track of a thread, and only
// if its id is a number; asynchronous slices lie on no thread. So reductions,
// which overlap, are spread over several tracks: "comm", "comm 2" and so on.
// The bytes of a rank's tensors are a counter, "memory".
//
// Format: "Trace Event Format", Chromium project, 2016. The parts of it that
// Perfetto reads are in its json_trace_parser.cc and flow_tracker.cc.

#ifndef ACTORS_TRACING_TRACE_JSON_H_
#define ACTORS_TRACING_TRACE_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "actors/tracing/trace.h"

namespace troupe::actors {

// Returns the JSON of `events` and `slices`. `dropped`: number of events that
// the sink has left out. Events are in the order of time, and slices in that of
// their ends; slices of a rank lie in each other or apart.
std::string TraceJson(const std::vector<StampedEvent>& events,
                      std::int64_t dropped,
                      const std::vector<TraceSlice>& slices = {});

}  // namespace troupe::actors

#endif  // ACTORS_TRACING_TRACE_JSON_H_
