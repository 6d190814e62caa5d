// What a job goes on from: the newest checkpoint of its folder, or the one that
// CheckpointOptions::from names, checked against the model and the optimizer of
// the job before any actor exists.
//
//   TROUPE_ASSIGN_OR_RETURN(Resume resume, OpenResume(spec, files));
//   TROUPE_RETURN_IF_ERROR(MatchKeys(spec, resume));
//   if (resume.checkpoint == nullptr) BeginAt(/*step=*/0);  // there was none
//
// A checkpoint is loaded strictly, as by PyTorch's load_state_dict(): what only
// one of the two has is an error that lists it by name, unless
// CheckpointOptions::allow_missing or allow_unexpected permits it. Otherwise
// the next checkpoints would lack it without a word, and the last good one be
// removed.

#ifndef ACTORS_SETUP_RESUME_H_
#define ACTORS_SETUP_RESUME_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/state_dict.h"
#include "actors/spec/job_spec.h"
#include "base/file_system.h"

namespace troupe::actors {

struct Resume {
  std::string path;  // of the checkpoint; empty: fresh
  // Its files, open; null: fresh, or the ranks have it.
  std::shared_ptr<const Checkpoint> checkpoint;
  // What the run that wrote it remembers of its evaluations.
  std::optional<EvaluationState> evaluations;
  IncompatibleKeys keys;  // missing and unexpected ones, where that is allowed
};

//   kInvalidArgument: the checkpoint is of another seed; blames the field.
//   the reader's error: it cannot be read.
absl::StatusOr<Resume> OpenResume(const JobSpec& spec, base::FileSystem& files);

// The one at `path`, which process 0 has chosen; empty: fresh.
absl::StatusOr<Resume> OpenResumeAt(const JobSpec& spec,
                                    base::FileSystem& files,
                                    const std::string& path);

// Fills `resume.keys`.
//   kInvalidArgument: the checkpoint is of another model or optimizer; lists
//     what is missing, unexpected and mismatched, and blames the options.
absl::Status MatchKeys(const JobSpec& spec, Resume& resume);

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_RESUME_H_
