#include "comm/shm/lent_ranges.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::comm {

LentRanges::State LentRanges::Lend(std::uint64_t id) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) return found->second.state;
  if (entries_.size() >= kLentRangesMax) return State::kRefused;
  entries_.emplace(id, Entry());
  return State::kOffer;
}

void LentRanges::NotOffered(std::uint64_t id) {
  absl::MutexLock lock(&mutex_);
  entries_.erase(id);
}

absl::StatusOr<bool> LentRanges::Answered(std::uint64_t id, bool mapped) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.state != State::kAsked) {
    return absl::DataLossError(
        absl::StrCat("an answer about range ", id, ", which was not offered"));
  }
  if (found->second.taken_back) {
    entries_.erase(found);
    return mapped;
  }
  found->second.state = mapped ? State::kReady : State::kRefused;
  return false;
}

bool LentRanges::TakeBack(std::uint64_t id) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return false;
  if (found->second.state == State::kAsked) {
    found->second.taken_back = true;
    return false;
  }
  const bool ready = found->second.state == State::kReady;
  entries_.erase(found);
  return ready;
}

absl::Status BorrowedRanges::Add(std::uint64_t id, base::OwnedFd file) {
  {
    absl::MutexLock lock(&mutex_);
    if (files_.contains(id) || files_.size() >= kLentRangesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("range ", id, " came twice, or is one too many"));
    }
  }
  TROUPE_ASSIGN_OR_RETURN(SealedFile mapped, SealedFile::Open(std::move(file)));
  mapped.CloseDescriptor();
  absl::MutexLock lock(&mutex_);
  files_[id] = std::make_shared<const SealedFile>(std::move(mapped));
  return absl::OkStatus();
}

void BorrowedRanges::Remove(std::uint64_t id) {
  // Unmapped after the lock is released.
  std::shared_ptr<const SealedFile> gone;
  absl::MutexLock lock(&mutex_);
  const auto found = files_.find(id);
  if (found == files_.end()) return;
  gone = std::move(found->second);
  files_.erase(found);
}

std::shared_ptr<char> BorrowedRanges::Find(std::uint64_t id,
                                           std::uint64_t offset,
                                           std::size_t bytes) const {
  absl::MutexLock lock(&mutex_);
  const auto found = files_.find(id);
  if (found == files_.end()) return nullptr;
  const std::shared_ptr<const SealedFile>& file = found->second;
  if (offset > file->bytes() || bytes > file->bytes() - offset) return nullptr;
  return std::shared_ptr<char>(file, file->data() + offset);
}

}  // namespace troupe::comm
