// Times candidates of an algorithm on the device: what a measured choice needs
// beside candidates.h.
//
//   SampleMemory memory(allocator, stream);
//   TROUPE_ASSIGN_OR_RETURN(void* x, memory.Numbers(DType::kBF16, 1 << 20));
//   TROUPE_ASSIGN_OR_RETURN(
//       const std::vector<CandidateTimes> times,
//       TimeCandidates(2, [&](int i) { return Run(i, x); }, stream));
//
// Samples go round by round over all candidates, so that clocks and heat weigh
// on all alike. Waits for the GPU; never while a stream captures.
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

// Device memory for as long as the object lives.
class SampleMemory {
 public:
  SampleMemory(Allocator& allocator, cudaStream_t stream)
      : allocator_(allocator), stream_(stream) {}

  //   kResourceExhausted: there is none left.
  absl::StatusOr<void*> Bytes(std::size_t bytes);
  // f32, bf16 or f16 numbers spread over [-1, 1): zeros would cost a GPU less
  // power, and so less time, than a network's numbers do.
  absl::StatusOr<void*> Numbers(DType dtype, std::int64_t elems);
  // The same as a tensor, which keeps its memory.
  absl::StatusOr<Tensor> Numbers(const Shape& shape, DType dtype);

 private:
  absl::Status Fill(DType dtype, std::int64_t elems, void* data);

  Allocator& allocator_;
  const cudaStream_t stream_;
  std::vector<StoragePtr> blocks_;
};

// One list for each of `count` candidates. run(i) enqueues one run of candidate
// i on `stream`; one that returns an error has no times.
//   kInternal: the device failed.
absl::StatusOr<std::vector<CandidateTimes>> TimeCandidates(
    int count, const std::function<absl::Status(int)>& run,
    cudaStream_t stream);

// The same for plans, all with these operands and one workspace in `memory`.
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
