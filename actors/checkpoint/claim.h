// Makes a folder of checkpoints that of one run: two that wrote there would
// remove each other's files.
//
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<base::FileLock> lock,
//                           ClaimCheckpoints(files, "checkpoints"));
//   WriteCheckpoints();
//   lock = nullptr;                         // another run may write there
//
// The claim is a lock on the file ".lock" in the folder, which stays there. The
// lock dies with the process, so none is stale after a crash. To read a
// checkpoint needs no claim.

#ifndef ACTORS_CHECKPOINT_CLAIM_H_
#define ACTORS_CHECKPOINT_CLAIM_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/file_system.h"

namespace troupe::actors {

// Makes `dir` where it is not there, locks it, and removes what runs that died
// have left unfinished in it. Null where the disk's file system has no locks:
// nothing is removed then, since it may be another run's.
//   kUnavailable: another run has the folder; says process, host, since when.
absl::StatusOr<std::shared_ptr<base::FileLock>> ClaimCheckpoints(
    base::FileSystem& files, const std::string& dir);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_CLAIM_H_
