#include "actors/setup/checkpoint_folder.h"

#include "actors/checkpoint/claim.h"
#include "base/check.h"

namespace troupe::actors {

CheckpointFolder::CheckpointFolder(const CheckpointOptions& options)
    : dir_(options.dir), files_(options.files), lock_(options.claim) {
  if (files_ != nullptr) return;
  own_files_ = std::make_unique<base::PosixFileSystem>();
  files_ = own_files_.get();
}

absl::Status CheckpointFolder::Lock() {
  if (lock_ != nullptr || dir_.empty()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(lock_, ClaimCheckpoints(*files_, dir_));
  return absl::OkStatus();
}

absl::Status CheckpointFolder::SetMark() {
  if (dir_.empty()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(mark_, MarkFolder(*files_, dir_));
  return absl::OkStatus();
}

absl::Status CheckpointFolder::Check(const std::string& mark) const {
  if (mark.empty() || dir_.empty()) return absl::OkStatus();
  return CheckMark(*files_, dir_, mark);
}

}  // namespace troupe::actors
