// The API's functions that make, query and end communicators.

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "base/cuda/emulated/nccl/communicator.h"
#include "base/cuda/emulated/nccl/exchanges.h"
#include "base/cuda/emulated/nccl/group.h"
#include "base/cuda/emulated/runtime/scheduler.h"

namespace emulated_cuda {
namespace {

constexpr unsigned kConfigMagic = 0xcafebeef;

bool IsValid(const ncclConfig_t* config) {
  return config == nullptr || config->magic == kConfigMagic;
}

// Returns `otherwise` for NCCL_CONFIG_UNDEF_INT.
bool IsBlocking(const ncclConfig_t* config, bool otherwise) {
  if (config == nullptr || config->blocking == NCCL_CONFIG_UNDEF_INT) {
    return otherwise;
  }
  return config->blocking != 0;
}

std::shared_ptr<Comm> NewComm(const ncclConfig_t* config, bool is_blocking) {
  auto comm = std::make_shared<Comm>();
  comm->device = ThisThread().device;
  comm->is_blocking = IsBlocking(config, is_blocking);
  TheNccl().comms[comm.get()] = comm;
  return comm;
}

void Join(Comm& comm, const std::shared_ptr<Clique>& clique, int rank) {
  comm.clique = clique;
  comm.rank = rank;
  ++clique->joined;
}

// Called once all ranks have called ncclCommSplit(): makes a clique of the
// ranks of each color, ordered by key and then by rank.
void MakeCliques(Split split) {
  std::sort(split.children.begin(), split.children.end(),
            [](const Split::Child& a, const Split::Child& b) {
              return std::tie(a.color, a.key, a.parent_rank) <
                     std::tie(b.color, b.key, b.parent_rank);
            });
  std::shared_ptr<Clique> clique;
  int color = 0;
  for (Split::Child& child : split.children) {
    if (!child.comm) continue;
    if (!clique || child.color != color) clique = std::make_shared<Clique>();
    color = child.color;
    Join(*child.comm, clique, clique->joined);
    clique->ranks = clique->joined;
  }
}

void Forget(const std::shared_ptr<Comm>& comm) {
  TheNccl().comms.erase(comm.get());
}

ncclResult_t NoSuchComm() {
  return Refuse(ncclInvalidArgument, "no such communicator");
}

}  // namespace
}  // namespace emulated_cuda

using emulated_cuda::FindComm;
using emulated_cuda::HandleOf;
using emulated_cuda::NoSuchComm;
using emulated_cuda::Refuse;
using emulated_cuda::TheNccl;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  EMULATED_NCCL_CALL();
  std::memset(id, 0, sizeof *id);
  const std::uint64_t number = TheNccl().next_id++;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int ranks, ncclUniqueId id,
                                    int rank, ncclConfig_t* config) {
  EMULATED_NCCL_CALL();
  *out = nullptr;
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  if (rank < 0 || rank >= ranks || !emulated_cuda::IsValid(config)) {
    return Refuse(ncclInvalidArgument, "a wrong rank, or a config unset");
  }
  if (number == 0 || number >= TheNccl().next_id) {
    return Refuse(ncclInvalidArgument, "not an id of ncclGetUniqueId()");
  }
  auto& clique = TheNccl().cliques[number];
  if (!clique) {
    clique = std::make_shared<emulated_cuda::Clique>();
    clique->ranks = ranks;
  }
  if (clique->ranks != ranks || clique->joined == ranks) {
    return Refuse(ncclInvalidArgument, "the ranks disagree about their number");
  }
  const auto comm = emulated_cuda::NewComm(config, /*is_blocking=*/true);
  std::uint64_t& left = TheNccl().comms_to_loss;
  const bool is_lost = left > 0 && --left == 0;
  if (!is_lost) emulated_cuda::Join(*comm, clique, rank);
  *out = HandleOf(comm);
  return emulated_cuda::SubmitNew(comm, call.site());
}

ncclResult_t ncclCommInitRank(ncclComm_t* out, int ranks, ncclUniqueId id,
                              int rank) {
  return ncclCommInitRankConfig(out, ranks, id, rank, /*config=*/nullptr);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int devices,
                             const int* device_list) {
  EMULATED_NCCL_CALL();
  const auto clique = std::make_shared<emulated_cuda::Clique>();
  clique->ranks = devices;
  for (int rank = 0; rank < devices; ++rank) {
    const auto comm = emulated_cuda::NewComm(nullptr, /*is_blocking=*/true);
    comm->device = device_list == nullptr ? rank : device_list[rank];
    emulated_cuda::Join(*comm, clique, rank);
    comms[rank] = HandleOf(comm);
  }
  for (int rank = 0; rank < devices; ++rank) Poll(*FindComm(comms[rank]));
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key,
                           ncclComm_t* out, ncclConfig_t* config) {
  EMULATED_NCCL_CALL();
  *out = nullptr;
  const auto parent = FindComm(handle);
  if (!parent) return NoSuchComm();
  if (const auto error = CheckUsable(*parent)) return error;
  if (!emulated_cuda::IsValid(config) ||
      (color < 0 && color != NCCL_SPLIT_NOCOLOR)) {
    return Refuse(ncclInvalidArgument, "a wrong color, or a config unset");
  }
  emulated_cuda::Split::Child child;
  child.color = color;
  child.key = key;
  child.parent_rank = parent->rank;
  if (color != NCCL_SPLIT_NOCOLOR) {
    child.comm = emulated_cuda::NewComm(config, parent->is_blocking);
    child.comm->device = parent->device;
    *out = HandleOf(child.comm);
  }
  const std::uint64_t number = parent->next_split++;
  auto& splits = parent->clique->splits;
  splits[number].children.push_back(child);
  if (splits[number].children.size() ==
      static_cast<std::size_t>(parent->clique->ranks)) {
    emulated_cuda::MakeCliques(std::move(splits[number]));
    splits.erase(number);
  }
  if (!child.comm) return ncclSuccess;
  return emulated_cuda::SubmitNew(child.comm, call.site());
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  EMULATED_NCCL_CALL_ANYWAY();
  const auto comm = FindComm(handle);
  if (!comm) return NoSuchComm();
  if (comm->error != ncclSuccess) {
    *error = comm->error;
  } else {
    *error = Poll(*comm) ? ncclSuccess : ncclInProgress;
  }
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t handle, int* count) {
  EMULATED_NCCL_CALL();
  const auto comm = FindComm(handle);
  if (!comm) return NoSuchComm();
  if (const auto error = CheckUsable(*comm)) return error;
  *count = comm->clique->ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t handle, int* rank) {
  EMULATED_NCCL_CALL();
  const auto comm = FindComm(handle);
  if (!comm) return NoSuchComm();
  if (const auto error = CheckUsable(*comm)) return error;
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t handle, int* device) {
  EMULATED_NCCL_CALL();
  const auto comm = FindComm(handle);
  if (!comm) return NoSuchComm();
  *device = comm->device;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  EMULATED_NCCL_CALL();
  const auto comm = FindComm(handle);
  if (!comm) return NoSuchComm();
  if (const auto error = CheckUsable(*comm)) return error;
  comm->is_finalizing = true;
  return Conclude(comm, call.site());
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  EMULATED_NCCL_CALL_ANYWAY();
  const auto comm = FindComm(handle);
  if (!comm) return NoSuchComm();
  if (HasPending(*comm)) {
    emulated_cuda::Problem(
        "ncclCommDestroy() while an operation of this rank is pending, in " +
        call.site().ToString());
    emulated_cuda::AbortPending(*comm);
  }
  while (!comm->registered.empty()) {
    emulated_cuda::Deregister(*comm, comm->registered.begin()->first);
  }
  comm->is_aborted = true;
  emulated_cuda::Forget(comm);
  return ncclSuccess;
}

// Ends pending operations without a result; peers wait until they abort as
// well.
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  EMULATED_NCCL_CALL_ANYWAY();
  const auto comm = FindComm(handle);
  if (!comm) return NoSuchComm();
  emulated_cuda::AbortPending(*comm);
  comm->is_aborted = true;
  emulated_cuda::Forget(comm);
  return ncclSuccess;
}

}  // extern "C"
