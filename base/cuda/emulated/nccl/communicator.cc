#include "base/cuda/emulated/nccl/communicator.h"

#include <utility>

#include "base/cuda/emulated/emulated_nccl.h"
#include "base/cuda/emulated/runtime/scheduler.h"

namespace emulated_cuda {

std::vector<std::string> Nccl::Leaks() const {
  if (comms.empty()) return {};
  return {std::to_string(comms.size()) + " communicators were never destroyed"};
}

Nccl& TheNccl() {
  std::unique_ptr<Extension>& nccl = TheWorld().nccl;
  if (!nccl) nccl = std::make_unique<Nccl>();
  return static_cast<Nccl&>(*nccl);
}

std::shared_ptr<Comm> FindComm(ncclComm_t handle) {
  const auto& comms = TheNccl().comms;
  const auto found = comms.find(handle);
  return found == comms.end() ? nullptr : found->second;
}

ncclComm_t HandleOf(const std::shared_ptr<Comm>& comm) {
  return reinterpret_cast<ncclComm_t>(comm.get());
}

bool HasPending(const Comm& comm) {
  if (!comm.deferred.empty()) return true;
  for (const auto& started : comm.started) {
    const OperationPtr op = started.lock();
    if (op && !op->done) return true;
  }
  return false;
}

bool Poll(Comm& comm) {
  if (comm.is_aborted) return true;
  const bool all_joined =
      comm.clique && comm.clique->joined == comm.clique->ranks;
  if (!all_joined) return false;
  const bool has_work = !comm.is_ready || !comm.deferred.empty();
  if (has_work && comm.polls_left > 0) {
    --comm.polls_left;
    return false;
  }
  comm.is_ready = true;
  for (Deferred& deferred : std::exchange(comm.deferred, {})) {
    Enqueue(*deferred.stream, std::move(deferred.work));
  }
  return !comm.is_finalizing || !HasPending(comm);
}

ncclResult_t Refuse(ncclResult_t error, const std::string& text) {
  TheNccl().last_error = text;
  return error;
}

ncclResult_t CheckUsable(const Comm& comm) {
  if (comm.error != ncclSuccess) {
    return Refuse(comm.error, "the communicator has failed");
  }
  if (!comm.is_ready || !comm.deferred.empty()) {
    return Refuse(ncclInvalidArgument,
                  "the communicator was used before its last call returned "
                  "ncclSuccess");
  }
  if (comm.is_finalizing) {
    return Refuse(ncclInvalidUsage, "the communicator was finalized");
  }
  return ncclSuccess;
}

ncclResult_t Conclude(const std::shared_ptr<Comm>& comm, const CallSite& site) {
  if (!comm->is_blocking) {
    comm->polls_left = TheWorld().random.Below(4);
    return ncclInProgress;
  }
  const bool is_done = WaitUntil(
      [&] { return Poll(*comm); },
      [&] {
        return "the other ranks of a communicator, in " + site.ToString();
      });
  if (comm->is_aborted) return ncclInternalError;
  return is_done ? ncclSuccess
                 : Refuse(ncclInternalError, "the other ranks never came");
}

ncclResult_t ResultOf(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return ncclSuccess;
    case cudaErrorNotPermitted:
      return Refuse(ncclInvalidUsage, "NCCL was called inside an operation");
    default:
      return Refuse(ncclUnhandledCudaError, cudaGetErrorName(error));
  }
}

void Deregister(Comm& comm, const void* registration) {
  const auto found = comm.registered.find(registration);
  if (!IsLiveOnDevice(registration, found->second)) {
    Problem("a range was freed before ncclCommDeregister()");
  }
  comm.registered.erase(found);
}

Registrations RegisteredRanges() {
  const WorldLock lock;
  Registrations registrations;
  registrations.ever = TheNccl().registrations;
  for (const auto& [handle, comm] : TheNccl().comms) {
    registrations.now += comm->registered.size();
  }
  return registrations;
}

void FailComm(ncclComm_t handle, ncclResult_t error) {
  const WorldLock lock;
  if (const auto comm = FindComm(handle)) comm->error = error;
}

void LoseComm(std::uint64_t number) {
  const WorldLock lock;
  TheNccl().comms_to_loss = number;
}

void FailCollective(std::uint64_t number, ncclResult_t error) {
  const WorldLock lock;
  TheNccl().calls_to_failure = number;
  TheNccl().failure = error;
}

}  // namespace emulated_cuda
