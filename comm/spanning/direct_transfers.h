// Runs a spanning group's collectives by reference: its processes access each
// other's ranges in shared memory (direct_work.h), and send notifications only.
//
//   const auto direct = std::make_shared<DirectTransfers>(life);
//   direct->Lend(op);                     // before the notes are sent
//   const absl::StatusOr<bool> by_reference = direct->Begin(op, &out);
//
// The messages between processes mean:
//
//     note       location of my ranks' ranges, in memory that all have mapped
//     let go     I have finished my part, and access your ranges no more; the
//                collective ends once all members have sent this
//
// After its note a process lends its ranges to each member (MemoryUse), until
// that member has sent kLetGo for the collective, or, if the group is aborted,
// kLetGoAll. A member that sends neither has its link closed (Abort). After a
// link is lost, memory that was lent over it is not reused
// (SharedMemory::Spoil), since the other end may still write to it. Data read
// from memory that its owner has given up is never used: the owner's kLetGo
// does not arrive, or BorrowedHolds() returns false.
//
// Locks: the group's; no arithmetic runs under it. Threads: any.

#ifndef COMM_SPANNING_DIRECT_TRANSFERS_H_
#define COMM_SPANNING_DIRECT_TRANSFERS_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/link.h"
#include "comm/spanning/group_lifetime.h"
#include "comm/spanning/outbox.h"

namespace troupe::comm::internal {

class DirectTransfers final
    : public std::enable_shared_from_this<DirectTransfers> {
 public:
  explicit DirectTransfers(std::shared_ptr<GroupLifetime> life)
      : life_(std::move(life)) {}

  // Lends the ranges of `op` to all members; its notes will refer to them.
  // Called under the group's lock.
  void Lend(const OpPtr& op);
  // Begins `op`, all of whose notes have been read. Returns false if its
  // elements go over links, since not all processes lend their ranges: every
  // process comes to the same conclusion. Called under the group's lock.
  absl::StatusOr<bool> Begin(const OpPtr& op, Outbox* out);

  // Records that a peer lends memory to this process.
  void ExpectLending() ABSL_LOCKS_EXCLUDED(life_->mutex());
  // Handle frames; kInvalidArgument if one is invalid.
  absl::Status TakeLetGo(int member, const Frame& frame)
      ABSL_LOCKS_EXCLUDED(life_->mutex());
  absl::Status TakeLetGoAll(int member) ABSL_LOCKS_EXCLUDED(life_->mutex());

 private:
  // Posts a task unless there are as many as ranks here: all of them may drive.
  void PostTask(const OpPtr& op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  void RunTask(const OpPtr& op) ABSL_LOCKS_EXCLUDED(life_->mutex());
  // Notifies the members, once, that all work of this process is complete.
  void EndIfDone(const OpPtr& op, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  void FinishIfLetGo(const OpPtr& op)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  void LetGo(Operation* op, int member)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());

  const std::shared_ptr<GroupLifetime> life_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_DIRECT_TRANSFERS_H_
