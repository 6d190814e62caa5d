#include "nn/kernels/cuda/call_memory.h"

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/cuda/cuda_status.h"

namespace troupe::nn::cuda {
namespace {

bool IsAligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kOperandAlignmentBytes == 0;
}

}  // namespace

absl::StatusOr<void*> CallMemory::Bytes(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  TROUPE_ASSIGN_OR_RETURN(StoragePtr block, gpu_.allocator->Allocate(bytes));
  blocks_.push_back(std::move(block));
  return blocks_.back()->data();
}

absl::StatusOr<const void*> CallMemory::Read(const Tensor& t) {
  if (!t.defined()) return nullptr;
  if (IsAligned(t.device_data())) return t.device_data();
  TROUPE_ASSIGN_OR_RETURN(void* const copy, Bytes(t.bytes()));
  TROUPE_RETURN_IF_ERROR(Copy(copy, t.device_data(), t.bytes()));
  return copy;
}

absl::StatusOr<void*> CallMemory::Write(Tensor& t, bool read_too) {
  if (IsAligned(t.device_data())) return t.device_data();
  TROUPE_ASSIGN_OR_RETURN(void* const copy, Bytes(t.bytes()));
  if (read_too) {
    TROUPE_RETURN_IF_ERROR(Copy(copy, t.device_data(), t.bytes()));
  }
  results_.push_back({t.device_data(), copy, t.bytes()});
  return copy;
}

absl::Status CallMemory::Finish() {
  for (const Result& result : results_) {
    TROUPE_RETURN_IF_ERROR(Copy(result.to, result.from, result.bytes));
  }
  results_.clear();
  return absl::OkStatus();
}

absl::Status CallMemory::Copy(void* to, const void* from, std::size_t bytes) {
  return base::CudaStatus(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, gpu_.stream),
      "copying an operand that is not aligned");
}

}  // namespace troupe::nn::cuda
