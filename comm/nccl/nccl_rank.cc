#include "comm/nccl/nccl_rank.h"

#include <cuda_runtime_api.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "comm/nccl/nccl_calls.h"

namespace troupe::comm::internal {
namespace {

// Limit on the wait for NCCL to finalize a communicator in Leave().
constexpr absl::Duration kFarewellMax = absl::Seconds(2);
constexpr char kInit[] = "ncclCommInitRankConfig";

// Waits until the last call is complete, or the time is over.
bool IsOver(ncclComm_t comm, ncclResult_t last) {
  const absl::Time until = absl::Now() + kFarewellMax;
  while (last == ncclInProgress && absl::Now() < until) {
    if (ncclCommGetAsyncError(comm, &last) != ncclSuccess) return false;
    if (last == ncclInProgress) sched_yield();
  }
  return last == ncclSuccess;
}

}  // namespace

absl::Status IdIsLate(const NcclGroupOptions& options) {
  return absl::DeadlineExceededError(absl::StrCat(
      "group \"", options.name, "\": rank ", options.ranks[0],
      " has not made it within ", absl::FormatDuration(options.timeout),
      "; make it in all its ranks, and all groups in one order"));
}

NcclRank::NcclRank(const NcclGroupOptions& options, int rank, FindId find_id,
                   std::shared_ptr<LocalRanks> local, AbortAll abort_all)
    : options_(options),
      rank_(rank),
      find_id_(std::move(find_id)),
      local_(std::move(local)),
      abort_all_(std::move(abort_all)) {}

NcclRank::~NcclRank() {
  // Leave() was called before, or nothing was ever begun.
  if (scratch_ != nullptr) cudaFree(scratch_);
}

absl::Time NcclRank::Now() const {
  return options_.now ? options_.now() : absl::Now();
}

std::string NcclRank::Named(absl::string_view what) const {
  return absl::StrCat("group \"", options_.name, "\" (ranks ",
                      absl::StrJoin(options_.ranks, ", "),
                      " of the job), rank ", rank_, ": ", what);
}

std::string NcclRank::LateText(std::uint64_t number) const {
  const std::vector<int> missing = local_->Missing(rank_, number);
  std::string who;
  if (!missing.empty()) {
    who = absl::StrCat("; ", missing.size() == 1 ? "rank " : "ranks ",
                       absl::StrJoin(missing, ", "),
                       missing.size() == 1 ? " has" : " have",
                       " not started it, as far as this process knows");
  }
  return absl::StrCat("waited ", absl::FormatDuration(options_.timeout),
                      " for the other ranks", who);
}

void NcclRank::Use(DeviceWork* work) {
  if (work_ != nullptr) {
    // The communicator is made already, or will be, on the former queue.
    work->Wait(work_->Record());
    work_ = work;
    return;
  }
  work_ = work;
  const absl::Time since = Now();
  const auto init = [self = shared_from_this(), since,
                     begun = false](void* stream) mutable {
    const bool over =
        self->HasId() && self->Advance(
                             kInit,
                             [](NcclRank& rank, void* on) {
                               rank.mutex_.AssertHeld();
                               const ncclResult_t made = rank.MakeScratch(on);
                               return made == ncclSuccess ? rank.Init() : made;
                             },
                             &begun, stream);
    if (over || self->Now() < since + self->options_.timeout) return over;
    self->abort_all_(self->id_.has_value()
                         ? absl::DeadlineExceededError(self->Named(
                               absl::StrCat(kInit, " ", self->LateText(0))))
                         : IdIsLate(self->options_));
    return true;
  };
  const absl::Status given = work_->Enqueue(kInit, init);
  if (!given.ok()) return abort_all_(given);
  // Keeps this rank alive until the queue has finished with the scratch memory.
  work_->Record().OnReady([self = shared_from_this()](const absl::Status&) {});
}

bool NcclRank::HasId() {
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok() || id_.has_value()) return true;
  }
  const absl::StatusOr<std::optional<ncclUniqueId>> found = find_id_();
  if (!found.ok()) {
    abort_all_(found.status());
    return true;
  }
  id_ = *found;
  return id_.has_value();
}

ncclResult_t NcclRank::Init() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  begun_ = true;
  return ncclCommInitRankConfig(&comm_, size(), *id_, rank_, &config);
}

absl::Status NcclRank::Ask(const std::string& what, bool* over) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  if (asked != ncclSuccess) state = asked;
  *over = state != ncclInProgress;
  if (state == ncclSuccess || state == ncclInProgress) return absl::OkStatus();
  return NcclStatus(state, comm_, Named(what));
}

bool NcclRank::Advance(const std::string& what, const NcclCall& call,
                       bool* begun, void* stream) {
  absl::Status failed;
  bool over = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return true;
    ncclResult_t result = ncclInProgress;
    if (!std::exchange(*begun, true)) result = call(*this, stream);
    if (result == ncclSuccess) return true;
    if (result == ncclInProgress) {
      failed = Ask(what, &over);
    } else {
      failed = NcclStatus(result, comm_, Named(what));
    }
  }
  if (failed.ok()) return over;
  abort_all_(failed);
  return true;
}

absl::Status NcclRank::Give(const char* name, const std::string& what,
                            NcclCall call) {
  return work_->Enqueue(name, [self = shared_from_this(), what, begun = false,
                               call = std::move(call)](void* stream) mutable {
    return self->Advance(what, call, &begun, stream);
  });
}

ncclResult_t NcclRank::RegisterNow(const nn::Tensor& range) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1)
  registered_.push_back(nullptr);
  const ncclResult_t result = ncclCommRegister(
      comm_, range.device_data(), range.numel() * nn::SizeOf(range.dtype()),
      &registered_.back());
  // Memory that NCCL does not register is reduced without it.
  return result == ncclInProgress ? result : ncclSuccess;
#else
  static_cast<void>(range);
  return ncclSuccess;
#endif
}

void NcclRank::Register(absl::Span<const nn::Tensor> ranges) {
  if (ranges.empty()) return Deregister();
  for (const nn::Tensor& range : ranges) {
    const absl::Status given = Give("ncclCommRegister", "ncclCommRegister",
                                    [range](NcclRank& rank, void*) {
                                      rank.mutex_.AssertHeld();
                                      return rank.RegisterNow(range);
                                    });
    if (!given.ok()) return abort_all_(given);
  }
}

// Pending work means that the job has failed: ncclCommAbort(), which follows,
// deregisters too.
void NcclRank::Deregister() {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1)
  absl::MutexLock lock(&mutex_);
  if (comm_ == nullptr || !pending_.empty()) return;
  for (void* registration : registered_) {
    if (registration != nullptr) ncclCommDeregister(comm_, registration);
  }
  registered_.clear();
#endif
}

void NcclRank::Ended(std::uint64_t number, const absl::Status& status) {
  absl::Status failed = status;
  {
    absl::MutexLock lock(&mutex_);
    const auto ended = std::find_if(
        pending_.begin(), pending_.end(),
        [number](const Pending& pending) { return pending.number == number; });
    // A stream also continues after a collective that NCCL gave up.
    bool over = false;
    if (failed.ok() && ended != pending_.end() && comm_ != nullptr) {
      failed = Ask(ended->what, &over);
    }
    if (failed.ok() && ended != pending_.end()) pending_.erase(ended);
  }
  if (!failed.ok()) abort_all_(failed);
}

void NcclRank::LookAfter() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(looking_, true)) return;
  }
  work_->LookAfter([self = shared_from_this()] { return self->Look(); });
}

absl::Status NcclRank::LookAtPending() {
  const Pending& oldest = pending_.front();
  bool over = false;
  if (comm_ != nullptr) {
    TROUPE_RETURN_IF_ERROR(Ask(oldest.what, &over));
  }
  if (Now() < oldest.since + options_.timeout) return absl::OkStatus();
  return absl::DeadlineExceededError(
      Named(absl::StrCat(oldest.what, " ", LateText(oldest.number))));
}

bool NcclRank::Look() {
  absl::Status failed;
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok() || pending_.empty()) {
      looking_ = false;
      return false;
    }
    failed = LookAtPending();
  }
  if (failed.ok()) return true;
  abort_all_(failed);
  return false;
}

void NcclRank::Abort(const absl::Status& status) {
  const absl::Status why =
      status.ok() ? absl::CancelledError("the group was aborted") : status;
  std::deque<Pending> pending;
  ncclComm_t comm = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return;
    waits_at_abort_ = WaitsNow();
    aborted_ = why;
    pending.swap(pending_);
    comm = std::exchange(comm_, nullptr);
  }
  // Completed before the kernels end, since their events would then report
  // success.
  for (const Pending& each : pending) each.done.Complete(why);
  if (comm != nullptr) ncclCommAbort(comm);
}

void NcclRank::Leave() {
  bool done = false;
  {
    absl::MutexLock lock(&mutex_);
    done = pending_.empty();
  }
  const bool needed = local_->Leave(rank_);
  if (!done || needed) {
    abort_all_(absl::UnavailableError(
        absl::StrCat("group \"", options_.name, "\": rank ", rank_,
                     " left while collectives wait for peers")));
  }
  ncclComm_t comm = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    comm = std::exchange(comm_, nullptr);
    aborted_.Update(absl::CancelledError(
        absl::StrCat("rank ", rank_, " has left the group")));
  }
  if (comm == nullptr) return;
  ncclResult_t state = ncclSuccess;
  const bool ready = ncclCommGetAsyncError(comm, &state) == ncclSuccess &&
                     state == ncclSuccess;
  if (ready && IsOver(comm, ncclCommFinalize(comm))) {
    ncclCommDestroy(comm);
  } else {
    ncclCommAbort(comm);
  }
}

std::vector<Waiting> NcclRank::Waits() const {
  absl::MutexLock lock(&mutex_);
  return aborted_.ok() ? WaitsNow() : waits_at_abort_;
}

std::vector<Waiting> NcclRank::WaitsNow() const {
  std::vector<Waiting> all;
  for (const Pending& pending : pending_) {
    Waiting waiting;
    waiting.collective = static_cast<std::int64_t>(pending.number);
    waiting.what = pending.what;
    waiting.since = pending.started;
    waiting.ranks = local_->Missing(rank_, pending.number);
    waiting.certain = options_.local.size() == options_.ranks.size();
    all.push_back(std::move(waiting));
  }
  return all;
}

}  // namespace troupe::comm::internal
