// Opens the checkpoint that a job is resumed from: the newest of its folder, or
// CheckpointOptions::from. Checks it against the model and the optimizer of the
// job before any actor exists.
//
//   TROUPE_ASSIGN_OR_RETURN(Resume resume, OpenResume(spec, files));
//   TROUPE_RETURN_IF_ERROR(MatchKeys(spec, resume));
//   if (resume.checkpoint == nullptr) BeginAt(/*step=*/0);  // there was none
//
// A checkpoint is loaded strictly, as by PyTorch's load_state_dict(): tensors
// that only the job or only the checkpoint has are an error that lists their
// names, unless CheckpointOptions::allow_missing or allow_unexpected permits
// them. Otherwise the next checkpoints would silently lack them, and the last
// good one would be removed.

#ifndef ACTORS_SETUP_RESUME_H_
#define ACTORS_SETUP_RESUME_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/state_dict.h"
#include "actors/spec/job_spec.h"
#include "base/files/file_system.h"

namespace troupe::actors {

struct Resume {
  std::string path;  // path of the checkpoint; empty: fresh
  // The checkpoint, open. Null: a fresh job, or it has been moved to the ranks.
  std::shared_ptr<const Checkpoint> checkpoint;
  // History of evaluations of the run that wrote it.
  std::optional<EvaluationState> evaluations;
  // Number of steps that the run had skipped then.
  std::int64_t skipped_steps = 0;
  IncompatibleKeys keys;  // missing and unexpected ones, if they are allowed
  // JobInfo::plan_changes and setting_changes.
  std::vector<std::string> plan_changes, setting_changes;
};

// Opens the checkpoint that `spec.checkpoint` names, if any.
//   kInvalidArgument: the checkpoint has another seed; names the field.
//   the reader's error: it cannot be read.
absl::StatusOr<Resume> OpenResume(const JobSpec& spec, base::FileSystem& files);

// Opens the checkpoint at `path`, which process 0 has chosen; empty: fresh.
// Errors: the same as OpenResume().
absl::StatusOr<Resume> OpenResumeAt(const JobSpec& spec,
                                    base::FileSystem& files,
                                    const std::string& path);

// Fills `resume.keys`.
//   kInvalidArgument: the checkpoint is of another model or optimizer; lists
//     the keys that are missing, unexpected and mismatched, and names the
//     fields that would allow them.
absl::Status MatchKeys(const JobSpec& spec, Resume& resume);

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_RESUME_H_
