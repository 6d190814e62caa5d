// Reads all files of a run folder, and checks that they belong together.
//
//   TROUPE_ASSIGN_OR_RETURN(const RunRecord run, ReadRun(files, "runs/a"));
//   run.facts.model, run.plan.mesh, run.metrics.train.size();
//   for (const std::string& note : run.notes) Print(note);
//
// run.json and plan.json are required; a note names each other missing file.
//
// Threads: none of its own. Calls block for as long as the disk takes.

#ifndef TOOLS_REPORT_RUN_READER_H_
#define TOOLS_REPORT_RUN_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "pipeline/plan.h"
#include "tools/report/metrics_reader.h"
#include "tools/report/run_facts.h"
#include "tools/report/trace_reader.h"

namespace troupe::tools {

struct RunRecord {
  RunFacts facts;
  pipeline::Plan plan;
  RunMetrics metrics;
  RunTrace trace;                  // has no bars if there is no trace file
  std::vector<std::string> notes;  // sentences on what is missing and why
};

//   kNotFound: the folder holds no run; the message says how to make one.
//   kInvalidArgument: a file is malformed or does not fit the plan; the message
//     names the file, and the line, event or field.
//   kResourceExhausted: a file is larger than its limit.
absl::StatusOr<RunRecord> ReadRun(base::FileSystem& files,
                                  const std::string& folder);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_RUN_READER_H_
