// Times candidate algorithms on the device; candidates.h chooses from the
// times.
//
//   SampleMemory memory(allocator, stream);
//   TROUPE_ASSIGN_OR_RETURN(void* x, memory.Numbers(DType::kBF16, 1 << 20));
//   TROUPE_ASSIGN_OR_RETURN(
//       const std::vector<CandidateTimes> times,
//       TimeCandidates(2, [&](int i) { return Run(i, x); }, stream));
//
// Each round takes one sample of every candidate, so that clock rates and heat
// affect all of them equally. Waits for the GPU, so it must not be called
// during a capture.
//
// Threads: the device's strand.

#ifndef NN_KERNELS_CUDA_LIBRARIES_MEASURE_H_
#define NN_KERNELS_CUDA_LIBRARIES_MEASURE_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/check.h"
#include "nn/kernels/cuda/libraries/candidates.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/shape.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::cuda {

// Owns the device memory of a measurement.
class SampleMemory {
 public:
  SampleMemory(Allocator& allocator, cudaStream_t stream)
      : allocator_(allocator), stream_(stream) {}

  //   kResourceExhausted: no memory is left.
  absl::StatusOr<void*> Bytes(std::size_t bytes);
  // Returns f32, bf16 or f16 numbers spread over [-1, 1): with zeros, a GPU
  // would use less power, and so less time, than with a network's numbers.
  absl::StatusOr<void*> Numbers(DType dtype, std::int64_t elems);
  // The same as a tensor, which owns its memory.
  absl::StatusOr<Tensor> Numbers(const Shape& shape, DType dtype);

 private:
  absl::Status Fill(DType dtype, std::int64_t elems, void* data);

  Allocator& allocator_;
  const cudaStream_t stream_;
  std::vector<StoragePtr> blocks_;
};

// Returns the times of each of `count` candidates. run(i) enqueues one run of
// candidate i on `stream`; a candidate whose run fails has no times.
//   kInternal: the device failed.
absl::StatusOr<std::vector<CandidateTimes>> TimeCandidates(
    int count, const std::function<absl::Status(int)>& run,
    cudaStream_t stream);

// The same for plans, all with the same operands and one workspace in `memory`.
template <typename Plan, typename Operands>
absl::StatusOr<std::vector<CandidateTimes>> TimePlans(
    const std::vector<std::unique_ptr<Plan>>& plans, const Operands& operands,
    SampleMemory& memory, cudaStream_t stream) {
  std::size_t workspace_bytes = 0;
  for (const auto& plan : plans) {
    workspace_bytes = std::max(workspace_bytes, plan->workspace_bytes());
  }
  TROUPE_ASSIGN_OR_RETURN(void* const workspace, memory.Bytes(workspace_bytes));
  return TimeCandidates(
      static_cast<int>(plans.size()),
      [&](int i) { return plans[i]->Run(operands, workspace, stream); },
      stream);
}

absl::StatusOr<bool> IsCapturing(cudaStream_t stream);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_MEASURE_H_
