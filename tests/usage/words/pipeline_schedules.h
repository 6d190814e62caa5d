// Declares names that the usage comments in pipeline/schedules/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_PIPELINE_SCHEDULES_H_
#define TESTS_USAGE_WORDS_PIPELINE_SCHEDULES_H_

#include <vector>

#include "absl/status/status.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/schedules/step_simulation.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline::usage {

extern absl::Status status;

namespace producer_h {
extern Tables tables;
}

namespace schedule_search_h {
StepCosts CostsOfParts(int stages);
}

namespace steady_steps_h {
extern const std::vector<StepTable> tables;
extern const Placement placement;
extern const StepCosts costs;
}  // namespace steady_steps_h

namespace critical_path_h {
extern const SimulatedStep step;
extern const Placement placement;
void Print(const SimulatedAction& action);
}  // namespace critical_path_h

namespace read_parts_h {
extern const StepTable table;
extern const int reader;
}  // namespace read_parts_h

namespace step_costs_h {
extern const std::vector<StepTable> tables;
extern const Placement placement;
}  // namespace step_costs_h

namespace step_simulation_h {
extern const std::vector<StepTable> tables;
void Print(const SimulatedAction& action);
}  // namespace step_simulation_h

}  // namespace troupe::pipeline::usage

#endif  // TESTS_USAGE_WORDS_PIPELINE_SCHEDULES_H_
