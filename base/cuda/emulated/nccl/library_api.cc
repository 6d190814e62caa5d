// The remaining functions of NCCL: versions, texts, registered memory,
// operators.

#include <cstring>
#include <utility>

#include "base/cuda/emulated/nccl/communicator.h"
#include "base/cuda/emulated/nccl/reduction.h"

using emulated_cuda::FindComm;
using emulated_cuda::Refuse;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

// The text is valid until the next call of this thread, as with the real one.
const char* ncclGetLastError(ncclComm_t) {
  static thread_local std::string text;
  const emulated_cuda::WorldLock lock;
  text = emulated_cuda::TheNccl().last_error;
  return text.c_str();
}

ncclResult_t ncclMemAlloc(void** p, std::size_t bytes) {
  return emulated_cuda::ResultOf(cudaMalloc(p, bytes));
}

ncclResult_t ncclMemFree(void* p) {
  return emulated_cuda::ResultOf(cudaFree(p));
}

ncclResult_t ncclCommRegister(const ncclComm_t handle, void* buffer,
                              std::size_t bytes, void** registration) {
  EMULATED_NCCL_CALL();
  *registration = nullptr;
  const auto comm = FindComm(handle);
  if (!comm) return Refuse(ncclInvalidArgument, "no such communicator");
  if (const auto error = CheckUsable(*comm)) return error;
  if (!emulated_cuda::IsLiveOnDevice(buffer, bytes) ||
      emulated_cuda::DeviceOf(buffer) != comm->device) {
    return Refuse(ncclInvalidArgument, "not a live range of the device");
  }
  comm->registered[buffer] = bytes;
  ++emulated_cuda::TheNccl().registrations;
  *registration = buffer;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t handle, void* registration) {
  EMULATED_NCCL_CALL();
  const auto comm = FindComm(handle);
  if (!comm) return Refuse(ncclInvalidArgument, "no such communicator");
  if (registration == nullptr) return ncclSuccess;
  if (comm->registered.count(registration) == 0) {
    return Refuse(ncclInvalidArgument, "not a registration of this one");
  }
  emulated_cuda::Deregister(*comm, registration);
  return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar,
                                      ncclDataType_t type,
                                      ncclScalarResidence_t residence,
                                      ncclComm_t handle) {
  EMULATED_NCCL_CALL();
  const auto comm = FindComm(handle);
  const std::size_t bytes = emulated_cuda::BytesOf(type);
  if (!comm || bytes == 0) {
    return Refuse(ncclInvalidArgument, "no such communicator or type");
  }
  emulated_cuda::PreMul made;
  made.type = type;
  if (residence == ncclScalarDevice) {
    made.on_device = scalar;
  } else {
    const auto* const begin = static_cast<const char*>(scalar);
    made.value.assign(begin, begin + bytes);
  }
  *op = comm->operators.Add(std::move(made));
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle) {
  EMULATED_NCCL_CALL();
  const auto comm = FindComm(handle);
  const bool known = comm && comm->operators.Remove(op);
  return known ? ncclSuccess : Refuse(ncclInvalidArgument, "no such operator");
}

}  // extern "C"
