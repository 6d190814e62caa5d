// The run that wrote a checkpoint, for commands that use its model and train
// nothing: `trainer generate`, `trainer predict`.
//
//   SavedRun run;
//   OptionsReader reader("predict");
//   DeclareSavedRun(reader, "photos", run);   // --checkpoint, --config, --set
//   TROUPE_ASSIGN_OR_RETURN(bool help, reader.Read(left));
//   TROUPE_RETURN_IF_ERROR(CheckSavedRun(run, "photos"));
//   TROUPE_RETURN_IF_ERROR(TakePrecision(saved, files, config));
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Sequential> model,
//                           LoadSavedModel(config, sample, saved, *kernels));

#ifndef TOOLS_TRAINER_SAVED_RUN_H_
#define TOOLS_TRAINER_SAVED_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "base/file_system.h"
#include "data/dataset.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/sequential.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/options_reader.h"

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

// The model of `config`, with the checkpoint's weights in memory of `kernels`.
//   kInvalidArgument: it does not take such samples.
//   other: as actors::LoadModel().
absl::StatusOr<std::unique_ptr<nn::Sequential>> LoadSavedModel(
    const TrainerConfig& config, const data::SampleSpec& sample,
    const actors::Checkpoint& checkpoint, nn::Kernels& kernels);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_SAVED_RUN_H_
