#include "comm/nccl/nccl_comm.h"

#include <sched.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace troupe::comm::internal {
namespace {

// Limit on the wait for NCCL to finalize a communicator.
constexpr absl::Duration kFinalizeMax = absl::Seconds(2);

// Waits until the last call is complete, or the time is over.
bool IsOver(ncclComm_t comm, ncclResult_t last) {
  const absl::Time until = absl::Now() + kFinalizeMax;
  while (last == ncclInProgress && absl::Now() < until) {
    if (ncclCommGetAsyncError(comm, &last) != ncclSuccess) return false;
    if (last == ncclInProgress) sched_yield();
  }
  return last == ncclSuccess;
}

}  // namespace

ncclResult_t NcclComm::Init(int size, const ncclUniqueId& id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return ncclCommInitRankConfig(&comm_, size, id, rank, &config);
}

ncclResult_t NcclComm::State() const {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  return asked == ncclSuccess ? state : asked;
}

ncclResult_t NcclComm::Register(const nn::Tensor& range) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1)
  registered_.push_back(nullptr);
  const ncclResult_t result = ncclCommRegister(
      comm_, range.device_data(), range.numel() * nn::SizeOf(range.dtype()),
      &registered_.back());
  return result == ncclInProgress ? result : ncclSuccess;
#else
  static_cast<void>(range);
  return ncclSuccess;
#endif
}

void NcclComm::Deregister() {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1)
  for (void* registration : registered_) {
    if (registration != nullptr) ncclCommDeregister(comm_, registration);
  }
  registered_.clear();
#endif
}

void NcclComm::Finish(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  const bool ready = ncclCommGetAsyncError(comm, &state) == ncclSuccess &&
                     state == ncclSuccess;
  if (ready && IsOver(comm, ncclCommFinalize(comm))) {
    ncclCommDestroy(comm);
  } else {
    ncclCommAbort(comm);
  }
}

}  // namespace troupe::comm::internal
