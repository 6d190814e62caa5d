// One rank of an NCCL group: its ncclComm_t, what it has started, and how that
// ends.
//
//   rank->Use(&work);                       // begins: its peers are awaited
//   TROUPE_ASSIGN_OR_RETURN(Event done, rank->Start({collective}, after));
//   rank->Abort(status);                    // from any thread
//
// The communicator is made with blocking = 0: each call may answer
// ncclInProgress, and is then not over. It is one piece of work of the device's
// queue (DeviceWork::Enqueue), which asks ncclCommGetAsyncError() until it is
// over and holds the queue meanwhile: neither another call of NCCL's nor the
// record of an event comes too early, and no thread waits.
//
//     queue   | wait `after` | init, asked again .. | all_reduce | record |
//
// Where the group has ranks of other processes, every Start() first gathers
// what all of them start (start_words.h), on the same queue and before it waits
// for `after`: in most cases while backward still computes what is to be
// reduced.
// What a graph records was compared in the steps before it.
//
// Whatever waits for peers is looked after by the device's Progress(): an
// asynchronous error and a time-out end the group.
//
// Threads: Use() and Start() in the device's thread; the rest in any. NCCL is
// called in the device's thread, but for ncclCommAbort(), and with a lock that
// keeps an abort from freeing what another call uses.

#ifndef COMM_NCCL_NCCL_RANK_H_
#define COMM_NCCL_NCCL_RANK_H_

#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
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

namespace troupe::comm::internal {

class NcclRank : public std::enable_shared_from_this<NcclRank> {
 public:
  // Ends the group for all its ranks of this process.
  using AbortAll = std::function<void(const absl::Status&)>;

  NcclRank(const NcclGroupOptions& options, int rank, const ncclUniqueId& id,
           std::shared_ptr<LocalRanks> local, AbortAll abort_all);
  ~NcclRank();
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(options_.ranks.size()); }

  void Use(DeviceWork* work) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Event> Start(absl::Span<const Collective> collectives,
                              const Event& after) ABSL_LOCKS_EXCLUDED(mutex_);
  // Communicator::UseRanges().
  void Register(absl::Span<const nn::Tensor> ranges)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Waiting> Waits() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends this rank alone.
  void Abort(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // The rank starts nothing any more; ends the communicator in good order where
  // all is done, and aborts the group otherwise.
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // One Start(): a collective, or several together.
  struct Pending {
    std::uint64_t number = 0;  // of the first, as all ranks count
    std::string what;
    Event done;
    absl::Time since;
    std::chrono::steady_clock::time_point started;
  };
  // What the ranks tell each other of a Start(), in memory of the host.
  struct Told {
    nn::Tensor mine, all;
    bool copied = false;  // into `all`, when its event is done
  };
  // A call of NCCL's: enqueues to `stream`.
  using NcclCall = std::function<ncclResult_t(NcclRank& rank, void* stream)>;

  ncclResult_t Init() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ncclResult_t MakeScratch(void* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ncclResult_t Run(const std::vector<Collective>& collectives, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ncclResult_t RegisterNow(const nn::Tensor& range)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deregister() ABSL_LOCKS_EXCLUDED(mutex_);
  std::size_t bytes_of_words() const;
  // The two halves of gathering what all ranks start.
  ncclResult_t Gather(const Told& told, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ncclResult_t CopyGathered(Told& told, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Work of the queue (DeviceWork::Enqueue): makes `call` once, then asks. True
  // when it is over, one way or another.
  bool Advance(const std::string& what, const NcclCall& call, bool* begun,
               void* stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives `call` to the queue; `name` is a literal.
  absl::Status Give(const char* name, const std::string& what, NcclCall call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The ranks of other processes hear what this one starts, and it what they
  // do, when the queue comes to it. Nothing where all live here, and in a
  // capture.
  absl::Status Tell(std::uint64_t number, const std::string& what,
                    absl::Span<const Collective> collectives)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Start(), as work of the queue.
  absl::Status GiveAll(std::uint64_t number, const std::string& what,
                       absl::Span<const Collective> collectives,
                       const Event& after) ABSL_LOCKS_EXCLUDED(mutex_);
  // The outcome of the last call that was not over; ok and ncclSuccess: none.
  absl::Status Ask(const std::string& what, bool* over)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<std::uint64_t> Admit(absl::Span<const Collective> collectives)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Ended(std::uint64_t number, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Sees to it that Look() is called.
  void LookAfter() ABSL_LOCKS_EXCLUDED(mutex_);
  // True: it is to be called again.
  bool Look() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status LookAtPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time Now() const;
  // "waited 5m for it; rank 1 has not started it".
  std::string LateText(std::uint64_t number) const;
  std::string Named(absl::string_view what) const;
  std::vector<Waiting> WaitsNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const NcclGroupOptions options_;
  const int rank_;
  const ncclUniqueId id_;
  const std::shared_ptr<LocalRanks> local_;
  const AbortAll abort_all_;
  DeviceWork* work_ = nullptr;

  mutable absl::Mutex mutex_;
  ncclComm_t comm_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;  // the communicator is made
  // On the device: kStartWords of each rank, and an int for barriers.
  void* scratch_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Of ncclCommRegister(). NCCL writes to an element later, perhaps.
  std::deque<void*> registered_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mutex_);
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Waiting> waits_at_abort_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_NCCL_RANK_H_
