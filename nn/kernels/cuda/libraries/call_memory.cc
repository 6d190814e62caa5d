#include "nn/kernels/cuda/libraries/call_memory.h"

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "nn/kernels/cuda/libraries/matrix_kernels.h"

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
  TROUPE_RETURN_IF_ERROR(
      Copy({t.dtype(), copy}, {t.dtype(), t.device_data()}, t.numel()));
  return copy;
}

absl::StatusOr<void*> CallMemory::Write(Tensor& t, bool read_too) {
  if (IsAligned(t.device_data())) return t.device_data();
  TROUPE_ASSIGN_OR_RETURN(void* const copy, Bytes(t.bytes()));
  if (read_too) {
    TROUPE_RETURN_IF_ERROR(
        Copy({t.dtype(), copy}, {t.dtype(), t.device_data()}, t.numel()));
  }
  results_.push_back({t, copy});
  return copy;
}

absl::Status CallMemory::Finish() {
  for (const Result& result : results_) {
    const Tensor& to = result.to;
    TROUPE_RETURN_IF_ERROR(Copy({to.dtype(), to.device_data()},
                                {to.dtype(), result.from}, to.numel()));
  }
  results_.clear();
  return absl::OkStatus();
}

absl::Status CallMemory::Copy(const Elements& to, const ConstElements& from,
                              std::int64_t count) {
  // Transposing a matrix of one row copies it.
  return TransposeEach(/*batch=*/1, {1, count}, from, /*accumulate=*/false, to,
                       gpu_.stream);
}

}  // namespace troupe::nn::cuda
