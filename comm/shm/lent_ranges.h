// Memory by reference, as one end of a link sees it: which of its own ranges
// the other end has mapped, and what it has mapped of the other end's.
//
//   LentRanges lent;
//   if (lent.Lend(range.id) == LentRanges::State::kOffer) {
//     // Send the descriptor; the other end says whether it has mapped it:
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
#include "base/owned_fd.h"
#include "comm/shm/sealed_file.h"

namespace troupe::comm {

// Ranges that one process lends to another at one time.
inline constexpr std::size_t kLentRangesMax = 1024;

class LentRanges {
 public:
  enum class State {
    kOffer,    // the other end has not been asked; it counts as asked now
    kAsked,    // and has not answered
    kReady,    // it has mapped the range
    kRefused,  // it cannot; or there are too many
  };

  State Lend(std::uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // The descriptor could not be sent: the next Lend() is the first.
  void NotOffered(std::uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // True: the range was taken back meanwhile, which the other end is to hear.
  // kDataLoss: it had not been asked.
  absl::StatusOr<bool> Answered(std::uint64_t id, bool mapped)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // True: the other end is to hear of it.
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
  // kInvalidArgument: the other end broke a rule. Other errors: this end cannot
  // map the range.
  absl::Status Add(std::uint64_t id, base::OwnedFd file)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(std::uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Bytes [offset, offset + bytes), mapped as long as the pointer; null where
  // they are not borrowed.
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
