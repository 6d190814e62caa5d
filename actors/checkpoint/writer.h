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
// Several ranks that have parts of a shard's tensors write its files together,
// in place, each what it has (nn/serialize/tensor_parts.h):
//
//   WriteCheckpointShard(files, folder, /*shard=*/0, /*shards=*/1, shard,
//                        {/*writer=*/1, /*writers=*/2});
//
// The files do not depend on who wrote what.
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
// Threads: different shards, and parts of one, from different threads. Calls
// block.

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

// One of the ranks that write a shard together.
struct ShardWriter {
  int number = 0;  // number among the writers, of which the first is 0
  int writers = 1;
};

// Entry of the index for a shard that is on the disk, or for the part that one
// of its writers has written.
struct ShardSummary {
  std::int32_t shard = 0;   // number of the shard, from 0
  std::int32_t writer = 0;  // ShardWriter::number
  std::int32_t writers = 1;
  std::uint64_t bytes = 0;          // size of the model's tensors
  std::uint64_t data_bytes = 0;     // size of all its tensors
  std::uint64_t written_bytes = 0;  // size of what this writer had of them
  std::uint64_t layout = 0;         // hash of the headers of the files
  std::vector<std::string> files;   // names in the folder, the model's first
  // Names of the model's tensors, in order, and of the optimizer's; empty but
  // for the first writer.
  std::vector<std::string> tensors;
  std::vector<std::string> states;
  // Checksums (tensor_hash.h) of the model's tensors, then of the optimizer's,
  // or of this writer's parts of them.
  std::vector<std::uint64_t> sums;
};

// Makes an empty folder for the checkpoint of `step` in `dir`, and `dir` if it
// is missing. Returns the folder's path.
absl::StatusOr<std::string> CreateCheckpointFolder(base::FileSystem& files,
                                                   const std::string& dir,
                                                   std::int64_t step);

// Writes the files of shard `shard` (from 0) of `shards`, or the parts of one
// of its writers, and syncs them to the disk.
absl::StatusOr<ShardSummary> WriteCheckpointShard(
    base::FileSystem& files, const std::string& folder, int shard, int shards,
    const CheckpointShard& what, const ShardWriter& writer = {});

// Adds index and trainer state, and renames the folder to its name in `dir`;
// then removes old checkpoints as WriteCheckpoint() does. After an error up to
// the renaming the folder is removed. `shards` has the summary of each writer
// of each shard, in any order. `mark_best`: points the link kBestName to the
// checkpoint of state.evaluations->best_step, if it exists, which is then kept
// whatever `keep` is.
//   kInvalidArgument: two shards have a tensor of one name.
//   kNotFound: a shard, a writer of one, or a file is missing; names it.
//   kDataLoss: the writers of a shard had other tensors, or elements that none
//     of them had.
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
