// One rank of an NCCL group: the work that it enqueues, and how it ends. Its
// communicator is nccl_comm.h, the work in flight pending_collectives.h.
//
//   rank->Use(&work);                       // waits for its peers
//   TROUPE_ASSIGN_OR_RETURN(Event done, rank->Start({collective}, after));
//   rank->Abort(status);                    // from any thread
//
// The communicator is made with blocking = 0: each call may return
// ncclInProgress, and is then not complete. It is one piece of work of the
// device's queue (DeviceWork::Enqueue), which polls ncclCommGetAsyncError()
// until it is complete and holds the queue meanwhile: so no other call of NCCL
// and no record of an event comes too early, and no thread waits. That of the
// communicator begins when the group's id is there.
//
//     queue   | wait `after` | init, polled ....... | all_reduce | record |
//
// If the group has ranks of other processes, every Start() first gathers the
// words of all ranks (start_words.h), on the same queue and before it waits for
// `after`: in most cases while backward still computes the input. Collectives
// that a graph records were compared in the steps before it.
//
// The device's Progress() checks work that waits for peers: an asynchronous
// error and a time-out end the group.
//
// Threads: Use() and Start() in the device's thread; the rest any. NCCL is
// called in the device's thread, but for ncclCommAbort(), and with a lock that
// keeps an abort from freeing the communicator during another call.

#ifndef COMM_NCCL_NCCL_RANK_H_
#define COMM_NCCL_NCCL_RANK_H_

#include <nccl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "comm/device/device_work.h"
#include "comm/nccl/local_ranks.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/nccl/nccl_comm.h"
#include "comm/nccl/nccl_id.h"
#include "comm/nccl/nccl_scratch.h"
#include "comm/nccl/pending_collectives.h"

namespace troupe::comm::internal {

class NcclRank : public std::enable_shared_from_this<NcclRank> {
 public:
  // Ends the group for all its ranks of this process.
  using AbortAll = std::function<void(const absl::Status&)>;

  NcclRank(const NcclGroupOptions& options, int rank, NcclId id,
           std::shared_ptr<LocalRanks> local, AbortAll abort_all);
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(options_.ranks.size()); }

  void Use(DeviceWork* work) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Event> Start(absl::Span<const Collective> collectives,
                              const Event& after) ABSL_LOCKS_EXCLUDED(mutex_);
  // Implements Communicator::UseRanges().
  void Register(absl::Span<const nn::Tensor> ranges)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Waiting> Waits() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends this rank alone.
  void Abort(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Called when the communicator is destroyed. Finalizes NCCL's communicator if
  // all work is complete, and aborts the group otherwise.
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A call of NCCL that enqueues to `stream`.
  using NcclCall = std::function<ncclResult_t(NcclRank& rank, void* stream)>;

  // Returns whether the creation of the communicator may begin, or the group
  // has ended.
  bool HasId() ABSL_LOCKS_EXCLUDED(mutex_);
  ncclResult_t Init(void* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ncclResult_t Run(const std::vector<Collective>& collectives, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Work of the queue (DeviceWork::Enqueue): makes `call` once, then polls.
  // Returns true once it has completed or failed.
  bool Advance(const std::string& what, const NcclCall& call, bool* begun,
               void* stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // Enqueues `call`; `name` is a literal.
  absl::Status Give(const char* name, const std::string& what, NcclCall call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Enqueues the exchange of words with ranks of other processes, and their
  // comparison. Does nothing if all ranks live here, or during a capture.
  absl::Status Tell(std::uint64_t number, const std::string& what,
                    absl::Span<const Collective> collectives)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Enqueues the work of Start().
  absl::Status GiveAll(std::uint64_t number, const std::string& what,
                       absl::Span<const Collective> collectives,
                       const Event& after) ABSL_LOCKS_EXCLUDED(mutex_);
  // Polls the last incomplete call: sets `over` when it is complete, and
  // returns its error.
  absl::Status Ask(const std::string& what, bool* over)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<std::uint64_t> Admit(absl::Span<const Collective> collectives)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Ended(std::uint64_t number, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Registers Look() with the device, once.
  void LookAfter() ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks pending work; returns whether it must be called again.
  bool Look() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status LookAtPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time Now() const;
  std::string Named(absl::string_view what) const;
  bool all_live_here() const {
    return options_.local.size() == options_.ranks.size();
  }
  std::vector<Waiting> WaitsNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return pending_.Waits(*local_, rank_, /*certain=*/all_live_here());
  }

  const NcclGroupOptions options_;
  const int rank_;
  NcclId id_;
  const std::shared_ptr<LocalRanks> local_;
  const AbortAll abort_all_;
  DeviceWork* work_ = nullptr;

  mutable absl::Mutex mutex_;
  NcclComm comm_ ABSL_GUARDED_BY(mutex_);
  NcclScratch scratch_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the device skips its calls
  PendingCollectives pending_ ABSL_GUARDED_BY(mutex_);
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Waiting> waits_at_abort_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_NCCL_RANK_H_
