#include "comm/nccl/nccl_rank.h"

#include <cuda_runtime_api.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "comm/device/device_check.h"
#include "comm/nccl/nccl_calls.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

// How long Leave() waits for NCCL to end a communicator in good order.
constexpr absl::Duration kFarewellMax = absl::Seconds(2);
constexpr char kInit[] = "ncclCommInitRankConfig";

bool HasBarrier(absl::Span<const Collective> collectives) {
  return std::any_of(collectives.begin(), collectives.end(),
                     [](const Collective& collective) {
                       return collective.kind == CollectiveKind::kBarrier;
                     });
}

// Waits until the last call is over, or the time.
bool IsOver(ncclComm_t comm, ncclResult_t last) {
  const absl::Time until = absl::Now() + kFarewellMax;
  while (last == ncclInProgress && absl::Now() < until) {
    if (ncclCommGetAsyncError(comm, &last) != ncclSuccess) return false;
    if (last == ncclInProgress) sched_yield();
  }
  return last == ncclSuccess;
}

}  // namespace

NcclRank::NcclRank(const NcclGroupOptions& options, int rank,
                   const ncclUniqueId& id, std::shared_ptr<LocalRanks> local,
                   AbortAll abort_all)
    : options_(options),
      rank_(rank),
      id_(id),
      local_(std::move(local)),
      abort_all_(std::move(abort_all)) {}

NcclRank::~NcclRank() {
  // Leave() has come before, or nothing was ever begun.
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
  work_ = work;
  const absl::Time since = Now();
  const auto init = [self = shared_from_this(), since,
                     begun = false](void* stream) mutable {
    const bool over = self->Advance(
        kInit,
        [](NcclRank& rank, void*) {
          rank.mutex_.AssertHeld();
          return rank.Init();
        },
        &begun, stream);
    if (over || self->Now() < since + self->options_.timeout) return over;
    self->abort_all_(absl::DeadlineExceededError(
        self->Named(absl::StrCat(kInit, " ", self->LateText(0)))));
    return true;
  };
  const absl::Status given = work_->Enqueue(kInit, init);
  if (!given.ok()) abort_all_(given);
}

ncclResult_t NcclRank::Init() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  begun_ = true;
  return ncclCommInitRankConfig(&comm_, size(), id_, rank_, &config);
}

ncclResult_t NcclRank::MakeScratch(void* stream) {
  if (scratch_ != nullptr) return ncclSuccess;
  if (cudaMalloc(&scratch_, sizeof(int)) != cudaSuccess) {
    return ncclUnhandledCudaError;
  }
  return cudaMemsetAsync(scratch_, 0, sizeof(int),
                         static_cast<cudaStream_t>(stream)) == cudaSuccess
             ? ncclSuccess
             : ncclUnhandledCudaError;
}

ncclResult_t NcclRank::Run(const std::vector<Collective>& collectives,
                           void* stream) {
  if (HasBarrier(collectives)) {
    const ncclResult_t made = MakeScratch(stream);
    if (made != ncclSuccess) return made;
  }
  return CallNccl(collectives, {comm_, rank_, size(),
                                static_cast<cudaStream_t>(stream), scratch_});
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
    const absl::Status why(number.status().code(),
                           absl::StrCat("group \"", options_.name,
                                        "\": ", number.status().message()));
    abort_all_(why);
    return why;
  }
  return first;
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
  Pending pending;
  pending.number = number;
  pending.what = absl::StrCat(
      collectives[0].ToString(), ", collective ", number, " of the group",
      collectives.size() == 1
          ? ""
          : absl::StrCat(", and ", collectives.size() - 1, " with it"));
  pending.done = Event::Make();
  pending.since = Now();
  pending.started = std::chrono::steady_clock::now();
  const Event done = pending.done;
  const std::string what = pending.what;
  {
    absl::MutexLock lock(&mutex_);
    TROUPE_RETURN_IF_ERROR(aborted_);
    pending_.push_back(std::move(pending));
  }
  const auto self = shared_from_this();
  after.OnReady([self](const absl::Status& status) {
    if (!status.ok()) self->abort_all_(status);
  });
  work_->Wait(after);
  const auto call =
      [self, what, begun = false,
       all = std::vector<Collective>(collectives.begin(), collectives.end())](
          void* stream) mutable {
        return self->Advance(
            what,
            [&all](NcclRank& rank, void* on) {
              rank.mutex_.AssertHeld();
              return rank.Run(all, on);
            },
            &begun, stream);
      };
  const absl::Status given =
      work_->Enqueue(NcclCallName(collectives[0].kind), call);
  if (!given.ok()) {
    abort_all_(given);
    return given;
  }
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
    const auto ended = std::find_if(
        pending_.begin(), pending_.end(),
        [number](const Pending& pending) { return pending.number == number; });
    // A stream goes on behind a collective that NCCL gave up, too.
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
  // Before the kernels end, and their events with them: those would say that
  // all went well.
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
    all.push_back(std::move(waiting));
  }
  return all;
}

}  // namespace troupe::comm::internal
