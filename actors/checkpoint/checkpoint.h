// A checkpoint: a folder that Python's `safetensors` can read, written so that
// a crash or a full disk at any moment leaves the last good one intact.
//
//   base::PosixFileSystem files;
//   TROUPE_ASSIGN_OR_RETURN(
//       std::string path,
//       WriteCheckpoint(files, "checkpoints", state, shards, /*keep=*/3));
//
//   absl::StatusOr<std::string> latest =
//       FindLatestCheckpoint(files, "checkpoints");   // kNotFound: none
//   TROUPE_ASSIGN_OR_RETURN(Checkpoint saved,
//                           Checkpoint::Open(files, *latest));
//   saved.state().step;
//   absl::Status s = saved.ReadModel("0.weight", parameter->value);
//
// docs/checkpoints.md describes the files. A checkpoint is written under
// another name ("step-00000100.tmp-4711"), synced to the disk file by file, and
// then renamed: a folder named "step-<digits>" is always whole. Tensors are
// found by name, so a checkpoint of a pipeline loads under any other cut.
//
// Threads: none of its own. One writer at a time for a folder (claim.h);
// reading from a Checkpoint is safe from any number of threads. Calls block
// until the disk is done: an actor that other actors wait for must not make
// them.

#ifndef ACTORS_CHECKPOINT_CHECKPOINT_H_
#define ACTORS_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "actors/checkpoint/trainer_state.h"
#include "base/files/file_system.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/tensor_parts.h"

namespace troupe::actors {

// The tensors that one stage of the model saves, or what one of several ranks
// has of each of them. The stages of a pipeline, in order, are the shards of a
// checkpoint. Optimizer states are named after their parameter:
// "0.weight.momentum_buffer".
struct CheckpointShard {
  std::vector<nn::TensorPart> model;
  std::vector<nn::TensorPart> optimizer;
};

// Writes "<dir>/step-<state.step>", in place of an earlier checkpoint of that
// step, and returns the path. Then removes unfinished checkpoints of crashed
// writers, and all but the newest `keep` whole ones (0: removes none). Never
// removes the checkpoint just written, nor the one that is marked as best.
//   kInvalidArgument: a tensor's name twice.
//   other: from the file system; names path, reason and what to do. Whole
//     checkpoints are then as they were, and nothing unfinished is left unless
//     it cannot be removed.
absl::StatusOr<std::string> WriteCheckpoint(
    base::FileSystem& files, const std::string& dir, const TrainerState& state,
    absl::Span<const CheckpointShard> shards, int keep);

// Returns the path of the whole checkpoint with the highest step.
//   kNotFound: there is none, or `dir` does not exist.
absl::StatusOr<std::string> FindLatestCheckpoint(base::FileSystem& files,
                                                 const std::string& dir);

// Returns the paths of all whole checkpoints, by ascending step; none if `dir`
// does not exist.
absl::StatusOr<std::vector<std::string>> ListCheckpoints(
    base::FileSystem& files, const std::string& dir);

// Returns the step to which the link "best" in `dir` points, the checkpoint of
// the best evaluation (docs/checkpoints.md); none if there is no link.
std::optional<std::int64_t> FindBestCheckpoint(base::FileSystem& files,
                                               const std::string& dir);

// Removes the link "best" in `dir` if its checkpoint no longer exists.
absl::Status DropStaleBest(base::FileSystem& files, const std::string& dir);

// Removes a whole checkpoint. Renames it first, so that a half of it never
// looks whole.
absl::Status RemoveCheckpoint(base::FileSystem& files, const std::string& path);

// A checkpoint opened for reading: every file exists and has a valid header.
class Checkpoint {
 public:
  // Opens the checkpoint in the folder `path`. Its index may be in Hugging
  // Face's own form, which does not count shards; a model in one file,
  // model.safetensors, needs no index.
  //   kNotFound: the folder, or a file of it, is missing.
  //   kDataLoss: a file is damaged; names it and says what is wrong.
  static absl::StatusOr<Checkpoint> Open(base::FileSystem& files,
                                         const std::string& path);

  const std::string& path() const { return path_; }
  const TrainerState& state() const { return state_; }
  // Sorted.
  std::vector<std::string> ModelNames() const { return Names(model_); }
  std::vector<std::string> OptimizerNames() const { return Names(optimizer_); }

  // The tensor's entry; null if the checkpoint has none of that name.
  const nn::SafetensorsEntry* FindModel(absl::string_view name) const {
    return Find(model_, name);
  }
  const nn::SafetensorsEntry* FindOptimizer(absl::string_view name) const {
    return Find(optimizer_, name);
  }

  // Fills `into` with a tensor, whichever file it is in, and compares its
  // checksum with that in the index. Errors: the same as
  // SafetensorsFile::Read(), and
  //   kDataLoss: the values have changed since they were written.
  absl::Status ReadModel(absl::string_view name, const nn::Tensor& into) const {
    return Read(model_, model_checks_, name, into);
  }
  absl::Status ReadOptimizer(absl::string_view name,
                             const nn::Tensor& into) const {
    return Read(optimizer_, optimizer_checks_, name, into);
  }

 private:
  using Files = std::vector<nn::SafetensorsFile>;
  // Texts by the tensor's name: checksums (tensor_hash.h), or the hashes of an
  // earlier version; none of either in files of other programs.
  struct Checks {
    std::map<std::string, std::string> sums, hashes;
  };

  Checkpoint() = default;
  absl::Status OpenShards(base::FileSystem& files);
  absl::Status OpenSingle(base::FileSystem& files);
  absl::Status OpenFiles(base::FileSystem& files,
                         const std::vector<std::string>& names,
                         Files& to) const;
  static std::vector<std::string> Names(const Files& from);
  static const nn::SafetensorsEntry* Find(const Files& from,
                                          absl::string_view name);
  absl::Status Read(const Files& from, const Checks& checks,
                    absl::string_view name, const nn::Tensor& into) const;

  std::string path_;
  TrainerState state_;
  Files model_;
  Files optimizer_;
  Checks model_checks_, optimizer_checks_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_CHECKPOINT_H_
