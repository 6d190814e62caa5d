// Writes a checkpoint in steps, so that each holder of a shard writes its own,
// and one writer gives the whole its name.
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
// Errors: the file system's; they name path, reason and what to do. Whoever
// gives up calls RemoveCheckpointFolder(); what nobody removes, the next
// PublishCheckpoint() of this or a later step does, and the next run that
// claims the folder (claim.h).
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
#include "base/file_system.h"

namespace troupe::actors {

// What the index says of a shard that is on the disk.
struct ShardSummary {
  std::int32_t shard = 0;            // from 0
  std::uint64_t bytes = 0;           // of the model's tensors
  std::vector<std::string> files;    // names in the folder, the model's first
  std::vector<std::string> tensors;  // names of the model's, in order
};

// Makes an empty folder for the checkpoint of `step` below `dir`, and `dir`
// where it is not there; returns its path.
absl::StatusOr<std::string> CreateCheckpointFolder(base::FileSystem& files,
                                                   const std::string& dir,
                                                   std::int64_t step);

// Writes the files of shard `shard` of `shards`, and puts them on the disk.
absl::StatusOr<ShardSummary> WriteCheckpointShard(base::FileSystem& files,
                                                  const std::string& folder,
                                                  int shard, int shards,
                                                  const CheckpointShard& what);

// Adds index and trainer state, and gives the folder its name in `dir`; then
// removes old checkpoints as WriteCheckpoint() does. After an error the folder
// is removed. `shards` in any order. `mark_best`: points the link kBestName to
// the checkpoint of state.evaluations->best_step, where it is there, so that it
// is kept whatever `keep` says.
//   kInvalidArgument: two shards have a tensor of one name.
//   kNotFound: a shard, or a file of one, is missing; names it.
absl::StatusOr<std::string> PublishCheckpoint(base::FileSystem& files,
                                              const std::string& dir,
                                              const std::string& folder,
                                              const TrainerState& state,
                                              std::vector<ShardSummary> shards,
                                              int keep, bool mark_best = false);

// Removes an unfinished checkpoint as far as it can be: what is left has a
// temporary name.
void RemoveCheckpointFolder(base::FileSystem& files, const std::string& folder);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_WRITER_H_
