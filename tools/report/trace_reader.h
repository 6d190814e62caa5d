// Reads the timeline of a run folder: bars, and samples of each rank's memory.
//
//   TROUPE_ASSIGN_OR_RETURN(const RunTrace trace, ReadTrace(text));
//   for (const Bar& bar : trace.bars) Draw(bar);
//
// actors/tracing/trace_json.h writes the text, but it is treated as untrusted:
// rows of another kind are skipped, and so are bars without an end. An error
// (kInvalidArgument) names the line if the text is not JSON, else the number of
// the row, from 1. Times are microseconds since the first bar began.
//
// Cost: linear in the text, a sort aside. At most one row at a time is held as
// JSON.

#ifndef TOOLS_REPORT_TRACE_READER_H_
#define TOOLS_REPORT_TRACE_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipeline/table/schedule.h"

namespace troupe::tools {

// Limits on a trace.
inline constexpr std::int64_t kTraceBytesMax = std::int64_t{512} << 20;
inline constexpr std::int64_t kTraceRanksMax = 1024;
inline constexpr std::size_t kTraceBarsMax = std::size_t{1} << 20;

enum class BarTrack {
  kCompute,  // an action of the compute strand
  kComm,     // a collective, from its launch to its result
  kLoad,     // a batch in preparation by a loader
};

struct Bar {
  int rank = 0;
  BarTrack track = BarTrack::kCompute;
  // The action or collective; has no meaning if `track` is kLoad or `is_graph`.
  pipeline::ActionKind kind = pipeline::ActionKind::kForward;
  bool is_graph = false;  // a recorded step, launched as a whole
  int chunk = 0;
  int index = 0;          // micro-batch or bucket
  std::int64_t step = 0;  // number of the step, from 1
  double begin = 0, end = 0;
};

// Number of bytes that the tensors of a rank held from `at` on.
struct MemorySample {
  int rank = 0;
  double at = 0;
  std::int64_t bytes = 0;
};

struct RunTrace {
  std::vector<Bar> bars;             // sorted by begin
  std::vector<MemorySample> memory;  // sorted by time
  std::int64_t dropped = 0;          // number of events that the run dropped
};

absl::StatusOr<RunTrace> ReadTrace(absl::string_view text);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_TRACE_READER_H_
