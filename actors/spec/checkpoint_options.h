// When a job saves checkpoints, and from which one it is resumed.
//
//   spec.checkpoint.dir = "run/checkpoints";
//   spec.checkpoint.every = 1000;
//   spec.checkpoint.resume = true;

#ifndef ACTORS_SPEC_CHECKPOINT_OPTIONS_H_
#define ACTORS_SPEC_CHECKPOINT_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/files/file_system.h"

namespace troupe::actors {

// Values of CheckpointOptions::best_metric: the smallest loss of an evaluation
// is the best, or the highest accuracy.
inline constexpr char kEvalLoss[] = "eval_loss";
inline constexpr char kEvalAccuracy[] = "eval_accuracy";

// When checkpoints are saved, and which are kept.
struct SavePolicy {
  static constexpr char kFieldsOf[] = "CheckpointOptions";  // field_error.h

  // Steps between checkpoints; 0: not by steps. The end of the job has one in
  // any case.
  std::int64_t every = 0;
  // Time since the last checkpoint, or the start, after which one is saved; 0:
  // not by time. A crash costs this much at most. Half an hour is near
  // sqrt(2 * cost * time between failures) (Young 1974) for a checkpoint that
  // costs seconds, and a failure in days.
  absl::Duration every_time = absl::Minutes(30);
  int keep = 3;  // number of newest checkpoints that are kept; 0: all
  // Whether the checkpoint of the best evaluation is kept, too, with the link
  // "best" in `dir` to it. An evaluation that is the best so far makes one.
  bool keep_best = false;
  // Metric by which evaluations are compared, here and for an early stop:
  // kEvalLoss or kEvalAccuracy.
  std::string best_metric = kEvalLoss;
  // Whether replicas are compared at each checkpoint, by hashes of parameters
  // and optimizer states: replicas that differ end the job. False: the
  // checkpoint has what the first replica has.
  bool compare_replicas = true;
  // Whether all ranks that have slices or pieces of tensors (ZeRO, tp) write
  // them into the files in place. False, or if a process does not have `dir`:
  // they send them to one rank of each stage, which writes whole tensors. The
  // same files, byte for byte.
  bool in_place = true;
};

// The checkpoint that a job is resumed from, and how it may differ from it.
struct ResumePolicy {
  static constexpr char kFieldsOf[] = "CheckpointOptions";

  bool resume = false;  // from the newest checkpoint in `dir`, if any
  // Path of a checkpoint, in any folder, to resume from instead.
  std::string from;
  // Whether a resumed job may lack tensors of the checkpoint, or have others
  // that begin with initial values; false: either is an error, as in PyTorch's
  // load_state_dict(strict=True). Names, shapes and dtypes count.
  bool allow_unexpected = false;
  bool allow_missing = false;
  // Whether a module of another type than the checkpoint's, or another value of
  // JobSpec::fixed_settings, is reported; false: it is an error, unless
  // allow_unexpected or allow_missing is set.
  bool allow_changed = false;
};

struct CheckpointOptions : SavePolicy, ResumePolicy {
  std::string dir;  // folder of the checkpoints; empty: none are saved
  // File system of the checkpoints. Null: the real disk. Outlives the job.
  base::FileSystem* files = nullptr;
  // Lock on `dir` (actors/checkpoint/claim.h). Null: the job takes it, and
  // releases it when it is destroyed. It is an error if another run holds the
  // lock then.
  std::shared_ptr<base::FileLock> claim;
};

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_CHECKPOINT_OPTIONS_H_
