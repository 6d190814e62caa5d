// Wake-ups between the two ends of a link (a doorbell, as that of a device's
// queue): whether threads sleep here, and whether the other end must be woken.
//
//   Doorbell bell(segment->sleeps(side), segment->sleeps(1 - side));
//   // A thread that has published something for the other end:
//   if (bell.ClaimWakeUp()) SendWakeUp();
//
//   // A thread that is about to sleep:
//   bell.Arm();
//   if (!HasWork()) WaitForWakeUp();
//   bell.Disarm();
//   // A thread that has received a wake-up:
//   if (bell.Rearm()) LookForWork();
//
// Each end has a flag in the shared memory. It raises the flag before a thread
// sleeps; the other end lowers the flag, and then sends one wake-up, however
// much it publishes before that is received. No wake-up is lost: a thread
// raises the flag before it looks for work, and the other end publishes work
// before it reads the flag, so one of them sees what the other did.
//
// Threads: any. Cost while no thread sleeps: a load for each call but Arm().

#ifndef COMM_SHM_DOORBELL_H_
#define COMM_SHM_DOORBELL_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"

namespace troupe::comm {

class Doorbell {
 public:
  // The flags of this end and of the other, which outlive the doorbell.
  Doorbell(std::atomic<std::uint32_t>* sleeps_here,
           std::atomic<std::uint32_t>* sleeps_there)
      : sleeps_here_(sleeps_here), sleeps_there_(sleeps_there) {}

  // Returns whether a thread of the other end sleeps, or is about to, and no
  // wake-up is on its way: the caller must send one.
  bool ClaimWakeUp() {
    return sleeps_there_->load(std::memory_order_seq_cst) != 0 &&
           sleeps_there_->exchange(0, std::memory_order_seq_cst) != 0;
  }

  // Announces that this thread is about to sleep. It must look for work after
  // that, and may sleep only if it finds none.
  void Arm() ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that this thread is awake, if it had called Arm().
  void Disarm() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (any_asleep_.load(std::memory_order_relaxed)) RemoveThisThread();
  }
  // Called by the thread that has received a wake-up, perhaps before other
  // sleeping threads saw it. If there are any, raises the flag for the next one
  // and returns true: the caller must look for work.
  bool Rearm();

 private:
  void RemoveThisThread() ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<std::uint32_t>* const sleeps_here_;
  std::atomic<std::uint32_t>* const sleeps_there_;
  absl::Mutex mutex_;
  // Threads that called Arm() and not Disarm() since, each by an address that
  // is unique among living threads.
  absl::InlinedVector<const void*, 8> asleep_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> any_asleep_{false};  // whether asleep_ has any
};

}  // namespace troupe::comm

#endif  // COMM_SHM_DOORBELL_H_
