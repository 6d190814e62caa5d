// `trainer predict`: the classes of images, by the model of a checkpoint.
//
//   PredictRequest request;
//   request.run.checkpoint = "checkpoints/photos";
//   request.paths = {"cat.jpg"};
//   TROUPE_RETURN_IF_ERROR(Predict(loaded, request, files, write, note));
//   // cat.jpg: cat 98.1 %, dog 1.9 %

#ifndef TOOLS_TRAINER_COMMANDS_PREDICT_COMMAND_H_
#define TOOLS_TRAINER_COMMANDS_PREDICT_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "tools/trainer/commands/command.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/run/saved_run.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::tools {

struct PredictRequest {
  bool help = false;
  SavedRun run;
  int top = 3;      // number of classes to print for each image
  int threads = 1;  // threads of each rank's computation
  std::vector<std::string> paths;
};

// Parses what follows `predict` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<PredictRequest> ParsePredict(
    const std::vector<std::string>& arguments);

std::string PredictHelp();

// Writes a line for each image, in order, as soon as it is computed. Ends at
// the first image that cannot be read.
//   kInvalidArgument: `loaded` has no classes of images, or is not the
//     configuration of the checkpoint.
//   kNotFound, kDataLoss: there is no checkpoint or image, or it is damaged.
absl::Status Predict(const LoadedConfig& loaded, const PredictRequest& request,
                     base::FileSystem& files,
                     const std::function<bool(absl::string_view)>& write,
                     const NoteFn& note);

Command PredictCommand();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_PREDICT_COMMAND_H_
