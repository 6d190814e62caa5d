// The API's device memory: immediate, in stream order, and the pool behind
// that.

#include <utility>

#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/capture.h"
#include "base/cuda/emulated/runtime/scheduler.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

DeviceMemory* MemoryOf(const void* p, DeviceMask* device) {
  const int d = DeviceOf(p);
  if (d < 0) return nullptr;
  *device = DeviceBit(d);
  return &TheWorld().devices[static_cast<std::size_t>(d)].memory;
}

// The pool's handle is the device's number plus 1.
cudaMemPool_t PoolOf(int device) {
  return reinterpret_cast<cudaMemPool_t>(static_cast<std::size_t>(device) + 1);
}
bool IsPool(cudaMemPool_t pool) {
  const auto number = reinterpret_cast<std::size_t>(pool);
  return number >= 1 && number <= TheWorld().devices.size();
}

}  // namespace
}  // namespace emulated_cuda

using emulated_cuda::DeviceBit;
using emulated_cuda::DeviceMask;
using emulated_cuda::DeviceMemory;
using emulated_cuda::Fail;
using emulated_cuda::OpenMemory;
using emulated_cuda::OperationPtr;
using emulated_cuda::Reuse;
using emulated_cuda::Stream;
using emulated_cuda::TheWorld;
using emulated_cuda::Work;
using emulated_cuda::World;

extern "C" {

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  EMULATED_CUDA_CALL();
  World& world = TheWorld();
  *out = nullptr;
  if (emulated_cuda::RefuseUnsafeCall()) {
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  ++world.activity.counts.system_allocations;
  if (bytes == 0) return cudaSuccess;
  DeviceMemory& memory = emulated_cuda::CurrentDevice().memory;
  OperationPtr after;
  void* const p = memory.Allocate({bytes, nullptr, call.site()},
                                  world.habits.reuse, world.random, &after);
  if (p == nullptr) return Fail(cudaErrorMemoryAllocation);
  emulated_cuda::Hear(after);
  const OpenMemory open(DeviceBit(emulated_cuda::ThisThread().device));
  {
    const emulated_cuda::Recorded recorded;
    emulated_cuda::NoteWrite(p, bytes);
  }
  memory.Poison(p, bytes);
  *out = p;
  return cudaSuccess;
}

// Never waits for the device, unlike the real one: no code should rely on that.
cudaError_t cudaFree(void* p) {
  EMULATED_CUDA_CALL();
  if (emulated_cuda::RefuseUnsafeCall()) {
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  ++TheWorld().activity.counts.system_allocations;
  if (p == nullptr) return cudaSuccess;
  DeviceMask device = 0;
  DeviceMemory* const memory = emulated_cuda::MemoryOf(p, &device);
  const auto* const block = memory == nullptr ? nullptr : memory->Find(p);
  if (block == nullptr) return Fail(cudaErrorInvalidValue);
  const OpenMemory open(device);
  memory->CheckEnd(p);
  {
    const emulated_cuda::Recorded recorded;
    emulated_cuda::NoteWrite(p, block->bytes);
  }
  memory->PoisonAndForbid(p, block->room);
  memory->Free(p, /*freed_by=*/nullptr, /*freed_on=*/-1);
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** out, std::size_t bytes,
                            cudaStream_t handle) {
  EMULATED_CUDA_CALL();
  World& world = TheWorld();
  *out = nullptr;
  Stream* const stream = emulated_cuda::Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  if (stream->capture != 0) {
    emulated_cuda::Invalidate(*stream);
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  if (bytes == 0) return cudaSuccess;
  const auto device = static_cast<std::size_t>(stream->device);
  DeviceMemory* const memory = &world.devices[device].memory;
  OperationPtr after;
  void* const p = memory->Allocate({bytes, stream, call.site()},
                                   world.habits.reuse, world.random, &after);
  if (p == nullptr) return Fail(cudaErrorMemoryAllocation);
  Work work;
  work.name = "cudaMallocAsync";
  work.site = call.site();
  work.devices = DeviceBit(stream->device);
  work.run = [memory, p, bytes] { memory->Poison(p, bytes); };
  std::vector<OperationPtr> waits_for;
  if (after) waits_for.push_back(std::move(after));
  Push(*stream, std::move(work), std::move(waits_for));
  *out = p;
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* p, cudaStream_t handle) {
  EMULATED_CUDA_CALL();
  Stream* const stream = emulated_cuda::Lookup(handle);
  if (stream == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  if (p == nullptr) return cudaSuccess;
  if (stream->capture != 0) {
    emulated_cuda::Invalidate(*stream);
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  Work work;
  work.name = "cudaFreeAsync";
  work.site = call.site();
  DeviceMemory* const memory = emulated_cuda::MemoryOf(p, &work.devices);
  const auto* const block = memory == nullptr ? nullptr : memory->Find(p);
  if (block == nullptr) return Fail(cudaErrorInvalidValue);
  work.run = [memory, p, room = block->room] {
    memory->PoisonAndForbid(p, room);
  };
  const cudaError_t error = Enqueue(*stream, std::move(work));
  if (error == cudaSuccess) memory->Free(p, stream->last, stream->id);
  return error;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  EMULATED_CUDA_CALL();
  *pool = emulated_cuda::PoolOf(device);
  return Fail(emulated_cuda::IsPool(*pool) ? cudaSuccess
                                           : cudaErrorInvalidDevice);
}

// The seed alone determines what the pool keeps, so attributes have no effect.
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr,
                                    void* value) {
  EMULATED_CUDA_CALL();
  const bool good = emulated_cuda::IsPool(pool) && value != nullptr;
  return Fail(good ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t) {
  EMULATED_CUDA_CALL();
  return Fail(emulated_cuda::IsPool(pool) ? cudaSuccess
                                          : cudaErrorInvalidValue);
}

}  // extern "C"
