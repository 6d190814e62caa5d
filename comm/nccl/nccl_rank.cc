#include "comm/nccl/nccl_rank.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/device/device_check.h"
#include "comm/nccl/nccl_calls.h"
#include "comm/nccl/start_words.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

constexpr char kInit[] = "ncclCommInitRankConfig";

}  // namespace

NcclRank::NcclRank(const NcclGroupOptions& options, int rank, NcclId id,
                   std::shared_ptr<LocalRanks> local, AbortAll abort_all)
    : options_(options),
      rank_(rank),
      id_(std::move(id)),
      local_(std::move(local)),
      abort_all_(std::move(abort_all)),
      scratch_(rank, size()) {}

absl::Time NcclRank::Now() const {
  return options_.now ? options_.now() : absl::Now();
}

std::string NcclRank::Named(absl::string_view what) const {
  return absl::StrCat("group \"", options_.name, "\" (ranks ",
                      absl::StrJoin(options_.ranks, ", "),
                      " of the job), rank ", rank_, ": ", what);
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
  const NcclCall make = [](NcclRank& rank, void* stream) {
    rank.mutex_.AssertHeld();
    return rank.Init(stream);
  };
  const auto init = [self = shared_from_this(), since, make,
                     begun = false](void* stream) mutable {
    const bool over =
        self->HasId() && self->Advance(kInit, make, &begun, stream);
    const absl::Duration timeout = self->options_.timeout;
    if (over || self->Now() < since + timeout) return over;
    const std::string late = self->local_->LateText(self->rank_, 0, timeout);
    self->abort_all_(self->id_.found()
                         ? absl::DeadlineExceededError(
                               self->Named(absl::StrCat(kInit, " ", late)))
                         : NcclId::Late(self->options_));
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
    if (!aborted_.ok()) return true;
  }
  const absl::StatusOr<bool> found = id_.Find();
  if (found.ok()) return *found;
  abort_all_(found.status());
  return true;
}

ncclResult_t NcclRank::Init(void* stream) {
  const ncclResult_t allocated = scratch_.Allocate(stream);
  if (allocated != ncclSuccess) return allocated;
  return comm_.Init(size(), id_.value(), rank_);
}

absl::Status NcclRank::Ask(const std::string& what, bool* over) {
  const ncclResult_t state = comm_.State();
  *over = state != ncclInProgress;
  if (state == ncclSuccess || state == ncclInProgress) return absl::OkStatus();
  return NcclStatus(state, comm_.get(), Named(what));
}

bool NcclRank::Advance(const std::string& what, const NcclCall& call,
                       bool* begun, void* stream) {
  absl::Status failed;
  bool over = false;
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return true;
    ncclResult_t result = ncclInProgress;
    if (!std::exchange(*begun, true)) result = call(*this, stream);
    if (result == ncclSuccess) return true;
    if (result == ncclInProgress) {
      failed = Ask(what, &over);
    } else {
      failed = NcclStatus(result, comm_.get(), Named(what));
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

void NcclRank::Register(absl::Span<const nn::Tensor> ranges) {
  if (ranges.empty()) {
    // Pending work means that the job has failed: ncclCommAbort(), which
    // follows, deregisters too.
    absl::MutexLock lock(&mutex_);
    if (comm_.get() != nullptr && pending_.empty()) comm_.Deregister();
    return;
  }
  for (const nn::Tensor& range : ranges) {
    const absl::Status given = Give("ncclCommRegister", "ncclCommRegister",
                                    [range](NcclRank& rank, void*) {
                                      rank.mutex_.AssertHeld();
                                      return rank.comm_.Register(range);
                                    });
    if (!given.ok()) return abort_all_(given);
  }
}

ncclResult_t NcclRank::Run(const std::vector<Collective>& collectives,
                           void* stream) {
  return CallNccl(collectives,
                  {comm_.get(), rank_, size(),
                   static_cast<cudaStream_t>(stream), scratch_.barrier()});
}

absl::Status NcclRank::Tell(std::uint64_t number, const std::string& what,
                            absl::Span<const Collective> collectives) {
  nn::Allocator* const memory = work_->host_allocator();
  if (all_live_here() || memory == nullptr || work_->capturing()) {
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const std::shared_ptr<GatheredWords> told,
                          GatheredWords::Of(collectives, size(), *memory));
  TROUPE_RETURN_IF_ERROR(
      Give("ncclAllGather", what, [told](NcclRank& rank, void* stream) {
        rank.mutex_.AssertHeld();
        return rank.scratch_.Gather(*told, rank.comm_.get(), stream);
      }));
  TROUPE_RETURN_IF_ERROR(Give("copy of what ranks start", what,
                              [told](NcclRank& rank, void* stream) {
                                rank.mutex_.AssertHeld();
                                return rank.scratch_.CopyBack(*told, stream);
                              }));
  work_->Record().OnReady([self = shared_from_this(), number,
                           told](const absl::Status& status) {
    if (!status.ok() || !told->copied) return;
    const absl::Status same =
        CompareStarts(number, told->all.span<std::int64_t>());
    if (same.ok()) return;
    self->abort_all_(base::WithMessage(
        same,
        absl::StrCat("group \"", self->options_.name, "\": ", same.message())));
  });
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> NcclRank::Admit(
    absl::Span<const Collective> collectives) {
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const absl::StatusOr<std::uint64_t> number =
        local_->Admit(rank_, Pack(collectives[i]));
    if (number.ok()) {
      if (i == 0) first = *number;
      continue;
    }
    if (i == 0 && absl::IsResourceExhausted(number.status())) {
      return number.status();
    }
    const absl::Status why = base::WithMessage(
        number.status(), absl::StrCat("group \"", options_.name,
                                      "\": ", number.status().message()));
    abort_all_(why);
    return why;
  }
  return first;
}

absl::Status NcclRank::GiveAll(std::uint64_t number, const std::string& what,
                               absl::Span<const Collective> collectives,
                               const Event& after) {
  TROUPE_RETURN_IF_ERROR(Tell(number, what, collectives));
  after.OnReady([self = shared_from_this()](const absl::Status& status) {
    if (!status.ok()) self->abort_all_(status);
  });
  work_->Wait(after);
  return Give(
      NcclCallName(collectives[0].kind), what,
      [all = std::vector<Collective>(collectives.begin(), collectives.end())](
          NcclRank& rank, void* stream) {
        rank.mutex_.AssertHeld();
        return rank.Run(all, stream);
      });
}

absl::StatusOr<Event> NcclRank::Start(absl::Span<const Collective> collectives,
                                      const Event& after) {
  TROUPE_CHECK(work_ != nullptr, "UseDevice() comes before Start()");
  for (const Collective& collective : collectives) {
    TROUPE_RETURN_IF_ERROR(CheckOnDevice(collective, rank_, size()));
    TROUPE_RETURN_IF_ERROR(CheckNccl(collective, rank_));
  }
  if (collectives.empty()) return after;
  {
    absl::MutexLock lock(&mutex_);
    TROUPE_RETURN_IF_ERROR(aborted_);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t number, Admit(collectives));
  Event done;
  std::string what;
  {
    absl::MutexLock lock(&mutex_);
    TROUPE_RETURN_IF_ERROR(aborted_);
    const PendingCollective& added = pending_.Add(number, collectives, Now());
    done = added.done;
    what = added.what;
  }
  const absl::Status given = GiveAll(number, what, collectives, after);
  if (!given.ok()) {
    abort_all_(given);
    return given;
  }
  const auto self = shared_from_this();
  const Event recorded = work_->Record();
  recorded.OnReady([self, number](const absl::Status& status) {
    self->Ended(number, status);
  });
  done.Follow(recorded);
  LookAfter();
  return done;
}

void NcclRank::Ended(std::uint64_t number, const absl::Status& status) {
  absl::Status failed = status;
  {
    absl::MutexLock lock(&mutex_);
    const PendingCollective* const ended = pending_.Find(number);
    // A stream also continues after a collective that NCCL gave up.
    bool over = false;
    if (failed.ok() && ended != nullptr && comm_.get() != nullptr) {
      failed = Ask(ended->what, &over);
    }
    if (failed.ok()) pending_.Remove(number);
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
  const PendingCollective& oldest = pending_.oldest();
  bool over = false;
  if (comm_.get() != nullptr) {
    TROUPE_RETURN_IF_ERROR(Ask(oldest.what, &over));
  }
  if (Now() < oldest.since + options_.timeout) return absl::OkStatus();
  return absl::DeadlineExceededError(Named(
      absl::StrCat(oldest.what, " ",
                   local_->LateText(rank_, oldest.number, options_.timeout))));
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
  std::deque<PendingCollective> pending;
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return;
    waits_at_abort_ = WaitsNow();
    aborted_ = why;
    pending = pending_.TakeAll();
  }
  // Completed before the device skips the calls and before the kernels end:
  // after either it would report success.
  for (const PendingCollective& each : pending) each.done.Complete(why);
  ncclComm_t comm = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    comm = comm_.Release();
  }
  if (comm != nullptr) NcclComm::Abort(comm);
}

void NcclRank::Leave() {
  const bool done = Waits().empty();
  const bool needed = local_->Leave(rank_);
  if (!done || needed) {
    abort_all_(absl::UnavailableError(
        absl::StrCat("group \"", options_.name, "\": rank ", rank_,
                     " left while collectives wait for peers")));
  }
  ncclComm_t comm = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    comm = comm_.Release();
    aborted_.Update(absl::CancelledError(
        absl::StrCat("rank ", rank_, " has left the group")));
    ended_ = true;
  }
  if (comm != nullptr) NcclComm::Finish(comm);
}

std::vector<Waiting> NcclRank::Waits() const {
  absl::MutexLock lock(&mutex_);
  return aborted_.ok() ? WaitsNow() : waits_at_abort_;
}

}  // namespace troupe::comm::internal
