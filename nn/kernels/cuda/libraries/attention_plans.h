// Attention on a GPU by the fastest available algorithm, behind one narrow
// interface. cudnn_attention.cc implements it by cuDNN, emulated_attention.cc
// by the reference loops for tests that emulate CUDA; in both, kernels of our
// own (attention.cu) are one of the candidates.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<AttentionPlans> plans,
//                           OpenAttentionPlans(options, own));
//   TROUPE_ASSIGN_OR_RETURN(AttentionPlan* plan, plans->Get(spec, stream));
//   TROUPE_ASSIGN_OR_RETURN(
//       StoragePtr workspace,
//       options.allocator->Allocate(plan->workspace_bytes()));
//   AttentionOperands operands;
//   operands.q = qkv, operands.y = y, operands.lse = lse;
//   status = plan->Run(operands, workspace->data(), stream);
//
// Forward and backward are chosen separately: `lse` means the same number in
// every algorithm. Choice, order of sums, streams, threads and lifetime are the
// same as in matmul.h.

#ifndef NN_KERNELS_CUDA_LIBRARIES_ATTENTION_PLANS_H_
#define NN_KERNELS_CUDA_LIBRARIES_ATTENTION_PLANS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/cuda/libraries/attention_spec.h"
#include "nn/kernels/cuda/libraries/library_options.h"

namespace troupe::nn::cuda {

class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;

  const AttentionSpec& spec() const { return spec_; }
  // Text of the algorithm, one word, as a choice cache stores it.
  const std::string& choice() const { return choice_; }
  // Bytes of the device memory that the caller passes to Run() as `workspace`;
  // only the work of that call uses it.
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  // Enqueues the computation on `stream`.
  //   kInvalidArgument: an operand is missing or not aligned.
  //   kInternal:        the library refused; names call and reason.
  virtual absl::Status Run(const AttentionOperands& operands, void* workspace,
                           cudaStream_t stream) = 0;

 protected:
  AttentionPlan(const AttentionSpec& spec, std::string choice,
                std::size_t workspace_bytes)
      : spec_(spec),
        choice_(std::move(choice)),
        workspace_bytes_(workspace_bytes) {}

 private:
  const AttentionSpec spec_;
  const std::string choice_;
  const std::size_t workspace_bytes_;
};

class AttentionPlans {
 public:
  virtual ~AttentionPlans() = default;

  // Returns the plan for `spec`; chooses it at the first call.
  //   kInvalidArgument: the spec's Check().
  //   kUnimplemented:   there is no library.
  //   kInternal:        the device failed.
  virtual absl::StatusOr<AttentionPlan*> Get(const AttentionSpec& spec,
                                             cudaStream_t stream) = 0;
};

// Returns the library whose algorithms are chosen: "cuDNN frontend 1.32.0",
// "own attention" or "emulated attention".
std::string AttentionLibraryName();

// Opens the library for the current device of the calling thread. `own` are
// kernels of our own, which enqueue to the stream that Get() and Run() are
// called with; they must outlive the plans.
//   kUnavailable: no driver, or no device.
absl::StatusOr<std::unique_ptr<AttentionPlans>> OpenAttentionPlans(
    const LibraryOptions& options, const AttentionKernels& own);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_ATTENTION_PLANS_H_
