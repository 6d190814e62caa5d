// Builds the JSON that the script of a run's page reads.
//
//   TROUPE_ASSIGN_OR_RETURN(const std::string json, ReportData(run));
//
// The text is ASCII and safe within a <script> element, whatever names the run
// uses: it contains no "<", ">" or "&". Times are microseconds since the step
// began.
//
//     {"title": .., "facts": [[name, value], ..], "notes": [..],
//      "words": {word: [what it does, colour, what its index counts], ..},
//      "span_kinds": [..], "rank_names": [..],
//      "steps": [{"step", "length", "ranks": [{"compute": [[word, chunk, index,
//        begin, end], ..], "comm": [[.., launched], ..], "others": [[.., step],
//        ..], "spans": [[kind, begin, end], ..], "totals": [..],
//        "memory": [[at, bytes], ..]}],
//        "path": [[rank, word, chunk, index, begin, end, handover], ..]}],
//      "plans": [{"name", "length", "idle", "rank_names", "ranks", "path"}],
//      "metrics": {"train": {"step": [..], "loss": [..]}, "evaluation": {..}}}
//
// Limits: kPageBarsMax bars over all steps (later steps are left out, and a
// note says so), and kPagePointsMax points of a curve, evenly spaced.

#ifndef TOOLS_REPORT_REPORT_DATA_H_
#define TOOLS_REPORT_REPORT_DATA_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "tools/report/run_reader.h"

namespace troupe::tools {

inline constexpr std::size_t kPageBarsMax = 300'000;
inline constexpr std::size_t kPagePointsMax = 4000;

//   kInvalidArgument: the plan's tables do not fit together.
absl::StatusOr<std::string> ReportData(const RunRecord& run);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_REPORT_DATA_H_
