// The work that NcclRank::Start() enqueues.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/device/device_check.h"
#include "comm/nccl/nccl_calls.h"
#include "comm/nccl/nccl_rank.h"
#include "comm/nccl/start_words.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

constexpr std::size_t kBytesOfWords = kStartWords * sizeof(std::int64_t);

ncclResult_t ResultOf(cudaError_t error) {
  return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

}  // namespace

std::size_t NcclRank::bytes_of_words() const { return size() * kBytesOfWords; }

ncclResult_t NcclRank::MakeScratch(void* stream) {
  const std::size_t bytes = bytes_of_words() + sizeof(int);
  const ncclResult_t made = ResultOf(cudaMalloc(&scratch_, bytes));
  if (made != ncclSuccess) return made;
  return ResultOf(
      cudaMemsetAsync(scratch_, 0, bytes, static_cast<cudaStream_t>(stream)));
}

ncclResult_t NcclRank::Run(const std::vector<Collective>& collectives,
                           void* stream) {
  void* const of_barrier = static_cast<char*>(scratch_) + bytes_of_words();
  return CallNccl(collectives, {comm_, rank_, size(),
                                static_cast<cudaStream_t>(stream), of_barrier});
}

ncclResult_t NcclRank::Gather(const Told& told, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  void* const mine = static_cast<char*>(scratch_) + rank_ * kBytesOfWords;
  const ncclResult_t copied =
      ResultOf(cudaMemcpyAsync(mine, told.mine.device_data(), kBytesOfWords,
                               cudaMemcpyHostToDevice, on));
  if (copied != ncclSuccess) return copied;
  return ncclAllGather(mine, scratch_, kStartWords, ncclInt64, comm_, on);
}

ncclResult_t NcclRank::CopyGathered(Told& told, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  told.copied = true;
  return ResultOf(cudaMemcpyAsync(told.all.device_data(), scratch_,
                                  bytes_of_words(), cudaMemcpyDeviceToHost,
                                  on));
}

absl::Status NcclRank::Tell(std::uint64_t number, const std::string& what,
                            absl::Span<const Collective> collectives) {
  nn::Allocator* const memory = work_->host_allocator();
  const bool all_live_here = options_.local.size() == options_.ranks.size();
  if (all_live_here || memory == nullptr || work_->capturing()) {
    return absl::OkStatus();
  }
  const auto told = std::make_shared<Told>();
  TROUPE_ASSIGN_OR_RETURN(
      told->mine, nn::Tensor::Create({kStartWords}, nn::DType::kI64, *memory));
  TROUPE_ASSIGN_OR_RETURN(
      told->all,
      nn::Tensor::Create({size(), kStartWords}, nn::DType::kI64, *memory));
  absl::c_copy(WordsOf(collectives), told->mine.span<std::int64_t>().begin());
  TROUPE_RETURN_IF_ERROR(
      Give("ncclAllGather", what, [told](NcclRank& rank, void* stream) {
        rank.mutex_.AssertHeld();
        return rank.Gather(*told, stream);
      }));
  TROUPE_RETURN_IF_ERROR(Give("copy of what ranks start", what,
                              [told](NcclRank& rank, void* stream) {
                                rank.mutex_.AssertHeld();
                                return rank.CopyGathered(*told, stream);
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

}  // namespace troupe::comm::internal
