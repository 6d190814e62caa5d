// All that a run folder has, read and checked against each other.
//
//   TROUPE_ASSIGN_OR_RETURN(const RunRecord run, ReadRun(files, "runs/a"));
//   run.facts.model, run.plan.mesh, run.metrics.train.size();
//   for (const std::string& note : run.notes) Print(note);
//
// run.json and plan.json must be there; what else is missing is told in a note.
//
// Threads: none of its own. Calls block for as long as the disk takes.

#ifndef TOOLS_REPORT_RUN_READER_H_
#define TOOLS_REPORT_RUN_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file_system.h"
#include "pipeline/plan.h"
#include "tools/report/metrics_reader.h"
#include "tools/report/run_facts.h"
#include "tools/report/trace_reader.h"

namespace troupe::tools {

struct RunRecord {
  RunFacts facts;
  pipeline::Plan plan;
  RunMetrics metrics;
  RunTrace trace;                  // without bars: there is none
  std::vector<std::string> notes;  // sentences, on what is missing and why
};

//   kNotFound: there is no run in the folder; says how to have one.
//   kInvalidArgument: a file is not what it should be, or not of this plan;
//     names the file, and the line, event or field.
//   kResourceExhausted: a file is larger than any run leaves.
absl::StatusOr<RunRecord> ReadRun(base::FileSystem& files,
                                  const std::string& folder);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_RUN_READER_H_
