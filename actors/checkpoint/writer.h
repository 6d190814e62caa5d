// Writes a checkpoint in steps, so that each holder of a shard writes its own,
// and one writer renames the folder when it is whole.
//
//   TROUPE_ASSIGN_OR_RETURN(                                   // one writer
//       std::string folder, CreateCheckpointFolder(files, dir, step));
//   TROUPE_ASSIGN_OR_RETURN(                                   // each holder
//       ShardSummary summary,
//       WriteCheckpointShard(files, folder, /*shard=*/1, /*shards=*/2, shard));
//   TROUPE_ASSIGN_OR_RETURN(                                   // the writer
//       std::string path,
//       PublishCheckpoint(files, dir, folder, state, summaries, /*keep=*/3));
//
// Between the first and the last call the folder has a temporary name, and no
// reader takes it for a checkpoint. Holders in other processes need to see the
// same folder. WriteCheckpoint() (checkpoint.h) does it all in one call.
//
// Errors: the file system's; they name path, reason and what to do. A writer
// that gives up calls RemoveCheckpointFolder(). A folder that is left is
// removed by the next PublishCheckpoint() of this or a later step, or by the
// next run that claims `dir` (claim.h).
//
// Threads: different shards from different threads. Calls block.

#ifndef ACTORS_CHECKPOINT_WRITER_H_
#define ACTORS_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/trainer_state.h"
#include "base/files/file_system.h"

namespace troupe::actors {

// Entry of the index for a shard that is on the disk.
struct ShardSummary {
  std::int32_t shard = 0;            // number of the shard, from 0
  std::uint64_t bytes = 0;           // size of the model's tensors
  std::vector<std::string> files;    // names in the folder, the model's first
  std::vector<std::string> tensors;  // names of the model's tensors, in order
  std::vector<std::string> states;   // names of the optimizer's tensors
  // Hashes (tensor_hash.h) of the model's tensors, then of the optimizer's.
  std::vector<std::uint64_t> hashes;
};

// Makes an empty folder for the checkpoint of `step` in `dir`, and `dir` if it
// is missing. Returns the folder's path.
absl::StatusOr<std::string> CreateCheckpointFolder(base::FileSystem& files,
                                                   const std::string& dir,
                                                   std::int64_t step);

// Writes the files of shard `shard` (from 0) of `shards`, and syncs them to the
// disk.
absl::StatusOr<ShardSummary> WriteCheckpointShard(base::FileSystem& files,
                                                  const std::string& folder,
                                                  int shard, int shards,
                                                  const CheckpointShard& what);

// Adds index and trainer state, and renames the folder to its name in `dir`;
// then removes old checkpoints as WriteCheckpoint() does. After an error up to
// the renaming the folder is removed. `shards` may have any order. `mark_best`:
// points the link kBestName to the checkpoint of state.evaluations->best_step,
// if it exists, which is then kept whatever `keep` is.
//   kInvalidArgument: two shards have a tensor of one name.
//   kNotFound: a shard, or a file of one, is missing; names it.
absl::StatusOr<std::string> PublishCheckpoint(base::FileSystem& files,
                                              const std::string& dir,
                                              const std::string& folder,
                                              const TrainerState& state,
                                              std::vector<ShardSummary> shards,
                                              int keep, bool mark_best = false);

// Removes an unfinished checkpoint. Ignores errors: files that are left have a
// folder with a temporary name.
void RemoveCheckpointFolder(base::FileSystem& files, const std::string& folder);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_WRITER_H_
