// Locks a folder of checkpoints for one run: two runs that write there would
// remove each other's files.
//
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<base::FileLock> lock,
//                           ClaimCheckpoints(files, "checkpoints"));
//   WriteCheckpoints();
//   lock = nullptr;                         // another run may write there
//
// The claim is a lock on the file ".lock" in the folder; the file stays. The
// system releases the lock when the process ends, so none is stale after a
// crash. Reading a checkpoint needs no claim.
//
// One process of a job claims the folder and marks it, and the others look
// whether theirs has the mark. Otherwise a relative path in
// another working folder, or a disk of each host, would be found only when the
// first checkpoint is written.
//
//   TROUPE_ASSIGN_OR_RETURN(const std::string mark,
//                           MarkFolder(files, "checkpoints"));   // process 0
//   TROUPE_RETURN_IF_ERROR(CheckMark(files, "checkpoints", mark));    // others

#ifndef ACTORS_CHECKPOINT_CLAIM_H_
#define ACTORS_CHECKPOINT_CLAIM_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/file_system.h"

namespace troupe::actors {

// Makes `dir` if it is missing, locks it, and removes the unfinished
// checkpoints of crashed runs. Returns null if the disk's file system has no
// locks: nothing is removed then, since it may be another run's.
//   kUnavailable: another run holds the lock; names its process and host, and
//     the time of the lock.
absl::StatusOr<std::shared_ptr<base::FileLock>> ClaimCheckpoints(
    base::FileSystem& files, const std::string& dir);

// Writes the file ".job" into `dir`, and returns its text, which no other job
// has. The file stays; the next job overwrites it.
absl::StatusOr<std::string> MarkFolder(base::FileSystem& files,
                                       const std::string& dir);
//   kFailedPrecondition: `dir` is missing, has no mark, or that of another job.
absl::Status CheckMark(base::FileSystem& files, const std::string& dir,
                       const std::string& mark);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_CLAIM_H_
