// Critical path of a recorded step, found backwards: from the bar that ended
// last, each time to the one that ended last among the bars it waited for.
//
//   for (const PathPart& part : CriticalPath(step, timeline, shape)) {
//     part.bar.rank, part.begin, part.end;
//     part.handover;       // time between the part before and this one
//   }
//
// A bar waits for the one before it on its rank. A forward, a backward or a
// receive also waits for the action on another stage that computes or sends its
// input; an update waits for the collective that ended last before it, and a
// collective for the rank that launched it last. A part of the path ends when
// the next one could begin, which may be before its bar ends: a collective may
// be launched in the middle of a backward.
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
