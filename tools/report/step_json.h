// Writes recorded and planned steps as parts of a page's JSON (report_data.h).
//
//   nlohmann::json step = StepJson(timeline.Step(12), timeline, shape);
//   AddMemory(trace, timeline.Step(12), &step);
//   const nlohmann::json plan = PlannedJson(planned);
//
// Threads: any.

#ifndef TOOLS_REPORT_STEP_JSON_H_
#define TOOLS_REPORT_STEP_JSON_H_

#include "nlohmann/json.hpp"
#include "tools/report/planned_step.h"
#include "tools/report/run_shape.h"
#include "tools/report/step_timeline.h"

namespace troupe::tools {

nlohmann::json StepJson(const StepTimeline& step, const RunTimeline& run,
                        const RunShape& shape);

// Adds to each rank the samples of its tensor memory during the step, and the
// last one before it.
void AddMemory(const RunTrace& trace, const StepTimeline& step,
               nlohmann::json* json);

nlohmann::json PlannedJson(const PlannedStep& planned);

// Returns {word: [what it does, colour, what its index counts]} of the actions
// of tables, by pipeline/table/action_rules.h. The colour is a name in
// page.css; the index counts "micro-batch", "bucket" or "step", whose actions
// have none.
nlohmann::json ActionWords();
// Returns the names of the values of SpanKind, indexed by value.
nlohmann::json SpanKindNames();

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_STEP_JSON_H_
