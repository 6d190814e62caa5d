// The folder of a job's checkpoints, as one process uses it: its file system,
// the lock that keeps other runs out, and the mark by which the job's processes
// check that all have the same folder (actors/checkpoint/claim.h).
//
//   CheckpointFolder folder(spec.checkpoint);
//   TROUPE_RETURN_IF_ERROR(folder.Lock());            // process 0
//   TROUPE_RETURN_IF_ERROR(folder.SetMark());         // process 0 of several
//   TROUPE_RETURN_IF_ERROR(folder.Check(mark));       // another process
//   TROUPE_ASSIGN_OR_RETURN(Resume resume, OpenResume(spec, folder.files()));
//
// A job that saves nothing has no folder: these calls do nothing then. The lock
// is released with the object.
//
// Threads: one at a time; files() from any number.

#ifndef ACTORS_SETUP_CHECKPOINT_FOLDER_H_
#define ACTORS_SETUP_CHECKPOINT_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "actors/spec/checkpoint_options.h"
#include "base/files/file_system.h"

namespace troupe::actors {

class CheckpointFolder {
 public:
  // No folder, on the real disk.
  CheckpointFolder() : CheckpointFolder(CheckpointOptions()) {}
  explicit CheckpointFolder(const CheckpointOptions& options);

  // Returns the options' file system; the real disk if they have none.
  base::FileSystem& files() const { return *files_; }

  // Locks the folder, unless the options have its lock already. Errors: those
  // of ClaimCheckpoints().
  absl::Status Lock();
  // Marks the folder as that of this job. Errors: those of MarkFolder().
  absl::Status SetMark();
  // Returns the mark that SetMark() has made; empty: there is none.
  const std::string& mark() const { return mark_; }
  // Checks that the folder has the mark of process 0; an empty one is not
  // looked for. Errors: those of CheckMark().
  absl::Status Check(const std::string& mark) const;

 private:
  std::string dir_;  // empty: there is no folder
  std::unique_ptr<base::FileSystem> own_files_;
  base::FileSystem* files_;
  std::shared_ptr<base::FileLock> lock_;
  std::string mark_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_CHECKPOINT_FOLDER_H_
