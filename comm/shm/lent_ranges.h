// Memory by reference at one end of a link: which of its own ranges the other
// end has mapped, and which of the other end's ranges it has mapped.
//   LentRanges lent;
//   if (lent.Lend(range.id) == LentRanges::State::kOffer) {
//     // Send the descriptor; the other end answers whether it has mapped it:
//     const absl::StatusOr<bool> gone = lent.Answered(range.id, true);
//   }
//
//   BorrowedRanges borrowed;
//   TROUPE_RETURN_IF_ERROR(borrowed.Add(id, std::move(received)));
//   std::shared_ptr<char> bytes = borrowed.Find(id, offset, count);
//
// Threads: any.

#ifndef COMM_SHM_LENT_RANGES_H_
#define COMM_SHM_LENT_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/files/owned_fd.h"
#include "comm/shm/sealed_file.h"

namespace troupe::comm {

// Limit on the ranges that one process lends to another at a time.
inline constexpr std::size_t kLentRangesMax = 1024;

class LentRanges {
 public:
  enum class State {
    kOffer,    // not offered yet; the caller must offer it now
    kAsked,    // offered, and not answered
    kReady,    // the other end has mapped the range
    kRefused,  // it cannot map it; or there are too many
  };

  State Lend(std::uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Undoes an offer whose descriptor could not be sent: the next Lend() is the
  // first.
  void NotOffered(std::uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records the other end's answer. Returns true if the range was taken back
  // meanwhile, and the other end must be notified. kDataLoss: it was not
  // offered.
  absl::StatusOr<bool> Answered(std::uint64_t id, bool mapped)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Withdraws a range. Returns true if the other end must be notified.
  bool TakeBack(std::uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    State state = State::kAsked;
    bool taken_back = false;
  };

  absl::Mutex mutex_;
  absl::flat_hash_map<std::uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

class BorrowedRanges {
 public:
  // Maps a range of the other end. kInvalidArgument: the other end broke a
  // rule. Other errors: this end cannot map the range.
  absl::Status Add(std::uint64_t id, base::OwnedFd file)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(std::uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns bytes [offset, offset + bytes), mapped as long as the pointer
  // lives; null if they are not borrowed.
  std::shared_ptr<char> Find(std::uint64_t id, std::uint64_t offset,
                             std::size_t bytes) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::uint64_t, std::shared_ptr<const SealedFile>> files_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm

#endif  // COMM_SHM_LENT_RANGES_H_
