// The API's collectives, sends and receives.

#include <string>

#include "base/cuda/emulated/nccl/communicator.h"
#include "base/cuda/emulated/nccl/exchanges.h"
#include "base/cuda/emulated/nccl/group.h"
#include "base/cuda/emulated/nccl/reduction.h"
#include "base/cuda/emulated/runtime/host_memory.h"

namespace emulated_cuda {
namespace {

bool DeviceMayUse(const void* p, std::size_t bytes) {
  return bytes == 0 || IsLiveOnDevice(p, bytes) ||
         PinnedAt(p, bytes) == Pinned::kAll;
}

bool HasRoot(Kind kind) {
  return kind == Kind::kReduce || kind == Kind::kBroadcast ||
         kind == Kind::kSend || kind == Kind::kReceive;
}

// Sets the factor if the operator was made by ncclRedOpCreatePreMulSum().
ncclResult_t ResolveOperator(const Comm& comm, WorkCall* call) {
  if (call->op < ncclNumOps) return ncclSuccess;
  const PreMul* const factor = comm.operators.Find(call->op);
  if (factor == nullptr || factor->type != call->type) {
    return Refuse(ncclInvalidArgument,
                  "no such operator for this communicator and type");
  }
  call->has_factor = true;
  call->factor = *factor;
  return ncclSuccess;
}

ncclResult_t CheckCall(const Comm& comm, const Stream* stream,
                       const WorkCall& call) {
  const int ranks = comm.clique->ranks;
  if (stream == nullptr || stream->device != comm.device) {
    return Refuse(ncclInvalidArgument,
                  "the stream is not of the communicator's device");
  }
  if (BytesOf(call.type) == 0) {
    return Refuse(ncclInvalidArgument, "a type that is not emulated");
  }
  if (HasRoot(call.kind) && (call.root < 0 || call.root >= ranks)) {
    return Refuse(ncclInvalidArgument, "a root or peer that does not exist");
  }
  if (!DeviceMayUse(call.send, BytesRead(call, comm.rank, ranks)) ||
      !DeviceMayUse(call.recv, BytesWritten(call, comm.rank, ranks))) {
    Problem(std::string(call.name) + " beyond an allocation");
    return Refuse(ncclInvalidArgument, "not a live range of device memory");
  }
  return ncclSuccess;
}

ncclResult_t Begin(const ApiCall& api, ncclComm_t handle, cudaStream_t stream,
                   WorkCall call) {
  const auto comm = FindComm(handle);
  if (!comm) return Refuse(ncclInvalidArgument, "no such communicator");
  if (const auto error = CheckUsable(*comm)) return error;
  if (const auto error = ResolveOperator(*comm, &call)) return error;
  Stream* const on = Lookup(stream);
  if (const auto error = CheckCall(*comm, on, call)) return error;
  const bool is_transfer =
      call.kind == Kind::kSend || call.kind == Kind::kReceive;
  if (call.count == 0 && !is_transfer) return ncclSuccess;
  std::uint64_t& left = TheNccl().calls_to_failure;
  if (left > 0 && --left == 0) {
    comm->error = TheNccl().failure;
    return ncclSuccess;
  }
  return Submit(comm, *on, call, api.site());
}

WorkCall MakeCall(Kind kind, const char* name, const void* send, void* recv,
                  std::size_t count, ncclDataType_t type) {
  WorkCall call;
  call.kind = kind;
  call.name = name;
  call.send = send;
  call.recv = recv;
  call.count = count;
  call.type = type;
  return call;
}

}  // namespace
}  // namespace emulated_cuda

using emulated_cuda::Kind;
using emulated_cuda::WorkCall;

extern "C" {

ncclResult_t ncclAllReduce(const void* send, void* recv, std::size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  EMULATED_NCCL_CALL();
  WorkCall work = emulated_cuda::MakeCall(Kind::kAllReduce, __func__, send,
                                          recv, count, type);
  work.op = op;
  return emulated_cuda::Begin(call, comm, stream, work);
}

ncclResult_t ncclReduce(const void* send, void* recv, std::size_t count,
                        ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  EMULATED_NCCL_CALL();
  WorkCall work =
      emulated_cuda::MakeCall(Kind::kReduce, __func__, send, recv, count, type);
  work.op = op;
  work.root = root;
  return emulated_cuda::Begin(call, comm, stream, work);
}

ncclResult_t ncclBroadcast(const void* send, void* recv, std::size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  EMULATED_NCCL_CALL();
  WorkCall work = emulated_cuda::MakeCall(Kind::kBroadcast, __func__, send,
                                          recv, count, type);
  work.root = root;
  return emulated_cuda::Begin(call, comm, stream, work);
}

ncclResult_t ncclBcast(void* buffer, std::size_t count, ncclDataType_t type,
                       int root, ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* recv, std::size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  EMULATED_NCCL_CALL();
  return emulated_cuda::Begin(
      call, comm, stream,
      emulated_cuda::MakeCall(Kind::kAllGather, __func__, send, recv, count,
                              type));
}

ncclResult_t ncclReduceScatter(const void* send, void* recv, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  EMULATED_NCCL_CALL();
  WorkCall work = emulated_cuda::MakeCall(Kind::kReduceScatter, __func__, send,
                                          recv, count, type);
  work.op = op;
  return emulated_cuda::Begin(call, comm, stream, work);
}

ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream) {
  EMULATED_NCCL_CALL();
  WorkCall work = emulated_cuda::MakeCall(Kind::kSend, __func__, send, nullptr,
                                          count, type);
  work.root = peer;
  return emulated_cuda::Begin(call, comm, stream, work);
}

ncclResult_t ncclRecv(void* recv, std::size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream) {
  EMULATED_NCCL_CALL();
  WorkCall work = emulated_cuda::MakeCall(Kind::kReceive, __func__, nullptr,
                                          recv, count, type);
  work.root = peer;
  return emulated_cuda::Begin(call, comm, stream, work);
}

}  // extern "C"
