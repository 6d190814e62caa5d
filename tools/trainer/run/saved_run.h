// The run that wrote a checkpoint, for commands that use its model but do not
// train: `trainer generate`, `trainer predict`.
//
//   SavedRun run;
//   OptionsReader reader("predict");
//   DeclareSavedRun(reader, "photos", run);   // --checkpoint, --config, --set
//   TROUPE_ASSIGN_OR_RETURN(bool help, reader.Read(left));
//   TROUPE_RETURN_IF_ERROR(CheckSavedRun(run, "photos"));
//   TROUPE_ASSIGN_OR_RETURN(OpenedRun opened, OpenRun(loaded, run, files));
//   TROUPE_ASSIGN_OR_RETURN(
//       const std::unique_ptr<actors::InferenceSession> model,
//       OpenSavedModel(std::move(opened), splits, files, threads));

#ifndef TOOLS_TRAINER_RUN_SAVED_RUN_H_
#define TOOLS_TRAINER_RUN_SAVED_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/inference/inference_session.h"
#include "base/files/file_system.h"
#include "data/registry.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/terminal/options_reader.h"

namespace troupe::tools {

struct SavedRun {
  std::string checkpoint;  // folder of a run, or of one of its steps
  std::string config;
  std::vector<std::string> sets;  // "section.key=value"
};

// Declares the options of `run`. `name` is the name of the run in their
// examples. `run` must outlive the reader.
void DeclareSavedRun(OptionsReader& reader, const std::string& name,
                     SavedRun& run);
// kInvalidArgument: no checkpoint was given.
absl::Status CheckSavedRun(const SavedRun& run, const std::string& name);

struct OpenedRun {
  actors::Checkpoint checkpoint;
  LoadedConfig loaded;  // its precision is a dtype, never kAutoPrecision
};

// Opens the checkpoint of `run`, or the newest in that folder. Where `loaded`
// leaves the precision open, the result has the precision of the run.
//   kNotFound, kDataLoss: there is no checkpoint, or it is damaged.
//   kInvalidArgument: the checkpoint does not say its precision.
absl::StatusOr<OpenedRun> OpenRun(const LoadedConfig& loaded,
                                  const SavedRun& run, base::FileSystem& files);

// Returns an error of data.path and data.tokenizer_path if token numbers stand
// for other texts than when `checkpoint` was written. Checkpoints of earlier
// versions do not tell.
absl::Status CheckVocabulary(const OpenedRun& run,
                             const data::Tokenizer& tokenizer);

// Opens the model of `run` with the weights of its checkpoint, on the host (on
// `reference` if train.device says so, which f64 needs): in
// as many stages as mesh.pp and mesh.virtual_stages say, on mesh.pp ranks of
// `threads` threads each. mesh.dp has no effect, since all replicas compute the
// same.
//   kInvalidArgument: the model does not take the samples of `splits`, the
//     stages do not fit it, or the checkpoint is of another model.
//   Others: the same as actors::InferenceSession::Open().
absl::StatusOr<std::unique_ptr<actors::InferenceSession>> OpenSavedModel(
    OpenedRun run, const data::DataSplits& splits, base::FileSystem& files,
    int threads);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_RUN_SAVED_RUN_H_
