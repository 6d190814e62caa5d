// `trainer plan`: prints the plan of a run and its predicted time and memory.
//
//   TROUPE_ASSIGN_OR_RETURN(PlanRequest request, ParsePlan(left.Rest()));
//   if (request.help) return PlanHelp();
//   TROUPE_RETURN_IF_ERROR(ShowPlan(loaded, request, files, write, note));

#ifndef TOOLS_TRAINER_COMMANDS_PLAN_COMMAND_H_
#define TOOLS_TRAINER_COMMANDS_PLAN_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "tools/trainer/commands/command.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::tools {

struct PlanRequest {
  bool help = false;
  // Values of the options that `trainer train` has, too.
  std::string config, ranks;
  std::vector<std::string> sets;
  bool measure = false;  // times a step, for predictions in milliseconds
  bool grid = false;     // prints only the tables of all ranks
  bool meshes = false;   // lists the meshes of as many ranks instead
  std::string memory;    // value of mesh.memory_limit; empty: as it is set
  double bandwidth = 0;  // bytes a second between ranks; 0: measured
  int columns = 100;     // width of the drawn step
};

// Parses what follows `plan` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<PlanRequest> ParsePlan(
    const std::vector<std::string>& arguments);

std::string PlanHelp();

// Writes the plan of the run. Trains nothing, except for a few steps if
// `request.measure` is set.
//   kInvalidArgument: the same as BuildSpec(), with the place of a key.
absl::Status ShowPlan(const LoadedConfig& loaded, const PlanRequest& request,
                      base::FileSystem& files,
                      const std::function<bool(absl::string_view)>& write,
                      const NoteFn& note);

Command PlanCommand();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_PLAN_COMMAND_H_
