// One rank of an NCCL group: its ncclComm_t, its pending work, and its end.
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

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
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

// Returns the error of a group whose id has not come in time.
absl::Status IdIsLate(const NcclGroupOptions& options);

class NcclRank : public std::enable_shared_from_this<NcclRank> {
 public:
  // Ends the group for all its ranks of this process.
  using AbortAll = std::function<void(const absl::Status&)>;
  // Returns the group's id; none if it is not there yet. Called in the device's
  // thread.
  using FindId = std::function<absl::StatusOr<std::optional<ncclUniqueId>>()>;

  NcclRank(const NcclGroupOptions& options, int rank, FindId find_id,
           std::shared_ptr<LocalRanks> local, AbortAll abort_all);
  ~NcclRank();
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
  // One Start(): a collective, or several together.
  struct Pending {
    // Number of the first collective, equal on all ranks.
    std::uint64_t number = 0;
    std::string what;
    Event done;
    absl::Time since;
    std::chrono::steady_clock::time_point started;
  };
  // Words that the ranks exchange before a Start(), in host memory.
  struct Told {
    nn::Tensor mine, all;
    bool copied = false;  // `all` is filled when the event is ready
  };
  // A call of NCCL that enqueues to `stream`.
  using NcclCall = std::function<ncclResult_t(NcclRank& rank, void* stream)>;

  // Returns whether the creation of the communicator may begin, or the group
  // has ended.
  bool HasId() ABSL_LOCKS_EXCLUDED(mutex_);
  ncclResult_t Init() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ncclResult_t MakeScratch(void* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ncclResult_t Run(const std::vector<Collective>& collectives, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ncclResult_t RegisterNow(const nn::Tensor& range)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deregister() ABSL_LOCKS_EXCLUDED(mutex_);
  std::size_t bytes_of_words() const;
  // The two steps of gathering the words of all ranks.
  ncclResult_t Gather(const Told& told, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ncclResult_t CopyGathered(Told& told, void* stream)
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
  // Returns "waited 5m for it; rank 1 has not started it".
  std::string LateText(std::uint64_t number) const;
  std::string Named(absl::string_view what) const;
  std::vector<Waiting> WaitsNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const NcclGroupOptions options_;
  const int rank_;
  const FindId find_id_;
  std::optional<ncclUniqueId> id_;
  const std::shared_ptr<LocalRanks> local_;
  const AbortAll abort_all_;
  DeviceWork* work_ = nullptr;

  mutable absl::Mutex mutex_;
  ncclComm_t comm_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;  // init was called
  // Device memory: kStartWords of each rank, and an int for barriers.
  void* scratch_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Handles of ncclCommRegister(); a deque, since NCCL may write to an element
  // later.
  std::deque<void*> registered_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mutex_);
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Waiting> waits_at_abort_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_NCCL_RANK_H_
