// The lifetime of a spanning group in one process: its lock, its collectives in
// flight, its first error, and how it ends.
//
//   const auto life = GroupLifetime::Make(board, courier, number, options);
//   {
//     absl::MutexLock lock(&life->mutex());
//     if (!life->aborted()) life->Finish(op);
//   }
//   life->BeginAbort(absl::CancelledError("the job ends"));
//
// Abort: nothing new is begun; when links, tasks and peers have released all
// memory (MemoryUse), all events complete and the group has *ended*.
//
// Locks: one mutex guards the state of the group, that of its operations too.
// No link, user code or arithmetic runs under it. Threads: any.

#ifndef COMM_SPANNING_GROUP_LIFETIME_H_
#define COMM_SPANNING_GROUP_LIFETIME_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "comm/local/wakeup.h"
#include "comm/spanning/frames/messages.h"
#include "comm/spanning/group_context.h"
#include "comm/spanning/operation/departures.h"
#include "comm/spanning/operation/memory_use.h"
#include "comm/spanning/operation/operation_table.h"
#include "comm/spanning/outbox.h"
#include "comm/spanning/send_queue.h"
#include "comm/spanning/wait_report.h"

namespace troupe::comm::internal {

class GroupLifetime final : public std::enable_shared_from_this<GroupLifetime> {
 public:
  static std::shared_ptr<GroupLifetime> Make(std::shared_ptr<Switchboard> board,
                                             std::shared_ptr<Courier> courier,
                                             std::uint32_t number,
                                             FabricGroupOptions options);

  const GroupContext& context() const { return context_; }
  SpanningMessages& messages() { return messages_; }
  absl::Mutex& mutex() const ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  OperationTable& ops() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ops_; }
  MemoryUse& memory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return memory_; }
  SendQueue& sends() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return sends_; }
  WaitReport& waits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waits_; }
  Departures& departures() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return departures_;
  }

  // Completes a collective, and wakes those that await it.
  void Finish(const OpPtr& op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool aborted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !status_.ok();
  }
  // Returns why the group was aborted; ok if it was not.
  const absl::Status& failure() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return status_;
  }
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);
  void BeginAbort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls BeginAbort(), and drives the fabric until all memory is released.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends an aborted group if its memory is free; called after each release.
  void EndIfReleased() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notifies the peers once nothing here accesses their memory: they wait for
  // that when a group that lends memory ends.
  void LetGoAllIfDue() ABSL_LOCKS_EXCLUDED(mutex_);
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  // Aborts the group if `out` has a failure, then sends its frames.
  void Send(const Outbox& out) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the callback that wakes the rank at `place` when the group has ended.
  void SetWakeup(int place, std::function<void()> wakeup);

 private:
  GroupLifetime(std::shared_ptr<Switchboard> board,
                std::shared_ptr<Courier> courier, std::uint32_t number,
                FabricGroupOptions options);

  void CloseHolders() ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake();

  const GroupContext context_;
  const std::unique_ptr<Wakeup[]> wakeups_;  // index: place
  SpanningMessages messages_;

  mutable absl::Mutex mutex_;
  OperationTable ops_ ABSL_GUARDED_BY(mutex_);
  SendQueue sends_ ABSL_GUARDED_BY(mutex_);
  MemoryUse memory_ ABSL_GUARDED_BY(mutex_);
  Departures departures_ ABSL_GUARDED_BY(mutex_);
  WaitReport waits_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> ended_{false};
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_GROUP_LIFETIME_H_
