// The run that wrote a checkpoint, for commands that use its model and train
// nothing: `trainer generate`, `trainer predict`.
//
//   SavedRun run;
//   OptionsReader reader("predict");
//   DeclareSavedRun(reader, "photos", run);   // --checkpoint, --config, --set
//   TROUPE_ASSIGN_OR_RETURN(bool help, reader.Read(left));
//   TROUPE_RETURN_IF_ERROR(CheckSavedRun(run, "photos"));
//   TROUPE_RETURN_IF_ERROR(TakePrecision(saved, files, loaded.config));
//   TROUPE_ASSIGN_OR_RETURN(
//       const std::unique_ptr<actors::InferenceSession> model,
//       OpenSavedModel(loaded, splits, std::move(saved), files, threads));

#ifndef TOOLS_TRAINER_RUN_SAVED_RUN_H_
#define TOOLS_TRAINER_RUN_SAVED_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/inference/inference_session.h"
#include "base/file_system.h"
#include "data/registry.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/terminal/options_reader.h"

namespace troupe::tools {

struct SavedRun {
  std::string checkpoint;  // the folder of a run, or of one of its steps
  std::string config;
  std::vector<std::string> sets;  // "section.key=value"
};

// The options of `run`; `name` is that of the run in their examples. `run`
// outlives the reader.
void DeclareSavedRun(OptionsReader& reader, const std::string& name,
                     SavedRun& run);
// kInvalidArgument: no checkpoint was given.
absl::Status CheckSavedRun(const SavedRun& run, const std::string& name);

// Where the configuration leaves the precision open: that of the run.
//   kInvalidArgument: the checkpoint does not have it.
//   the reader's error.
absl::Status TakePrecision(const actors::Checkpoint& checkpoint,
                           base::FileSystem& files, TrainerConfig& config);

// The model of `loaded`, whose precision is no longer open, with the
// checkpoint's weights, on the host: in as many stages as mesh.pp and
// mesh.virtual_stages say, on mesh.pp ranks of `threads` threads each. Another
// replica than the first would do the same, so mesh.dp counts for nothing.
//   kInvalidArgument: it does not take such samples, stages do not fit it, or
//     the checkpoint is of another model.
//   other: as actors::InferenceSession::Open().
absl::StatusOr<std::unique_ptr<actors::InferenceSession>> OpenSavedModel(
    const LoadedConfig& loaded, const data::DataSplits& splits,
    actors::Checkpoint checkpoint, base::FileSystem& files, int threads);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_RUN_SAVED_RUN_H_
