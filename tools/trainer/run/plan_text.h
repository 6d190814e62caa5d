// The texts that `trainer plan` prints of a predicted step.
//
//   PlanTextOptions options;
//   options.measured = true;
//   write(PlanText(loaded.config, step, options));

#ifndef TOOLS_TRAINER_RUN_PLAN_TEXT_H_
#define TOOLS_TRAINER_RUN_PLAN_TEXT_H_

#include <string>

#include "actors/planning/step_prediction.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

struct PlanTextOptions {
  bool measured = false;  // whether costs are seconds, not FLOPs
  int columns = 100;      // width of the drawn step
};

std::string PlanText(const TrainerConfig& config,
                     const actors::StepPrediction& step,
                     const PlanTextOptions& options);

// Returns the tables of the ranks, in the order in which they ran them: the
// text that mesh.schedule_file takes.
std::string GridText(const actors::StepPrediction& step);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_RUN_PLAN_TEXT_H_
