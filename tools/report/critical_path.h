// What a recorded step could not have been shorter than, as it ran: from its
// last bar back to its first, each time to what ended last of that which the
// bar waited for.
//
//   for (const PathPart& part : CriticalPath(step, timeline, shape)) {
//     part.bar.rank, part.begin, part.end;
//     part.handover;       // time between the part before and this one
//   }
//
// A bar waits for the one before it on its rank; a forward, a backward or a
// receive also for what makes its input on another stage, or hands it over; an
// update for the collective that ended last before it; a collective for the
// rank that launched it last. A part ends where the next one's cause is given:
// a collective may be launched in the middle of a backward.
//
// Cost: n log n in the bars of the step.

#ifndef TOOLS_REPORT_CRITICAL_PATH_H_
#define TOOLS_REPORT_CRITICAL_PATH_H_

#include <vector>

#include "tools/report/run_shape.h"
#include "tools/report/step_timeline.h"

namespace troupe::tools {

struct PathPart {
  Bar bar;
  double begin = 0, end = 0;
  double handover = 0;
};

std::vector<PathPart> CriticalPath(const StepTimeline& step,
                                   const RunTimeline& run,
                                   const RunShape& shape);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_CRITICAL_PATH_H_
