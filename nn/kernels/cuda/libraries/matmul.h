// Matrix products on a GPU, behind one narrow interface: cublaslt_matmul.cc
// implements it by cuBLASLt, emulated_matmul.cc by plain loops for tests that
// emulate CUDA. A program links one of them.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<MatmulPlans> plans,
//                           OpenMatmulPlans(options));
//   TROUPE_ASSIGN_OR_RETURN(MatmulPlan* plan, plans->Get(spec, stream));
//   TROUPE_ASSIGN_OR_RETURN(
//       StoragePtr workspace,
//       options.allocator->Allocate(plan->workspace_bytes()));
//   MatmulOperands operands;
//   operands.a = x, operands.b = w, operands.c = y, operands.bias = b;
//   status = plan->Run(operands, workspace->data(), stream);
//
// Choice: several algorithms can compute a product; they differ in speed and in
// last bits. The first Get() of a spec takes the recorded choice
// (kernel_choices.h). Without a record, it measures candidates on memory of its
// own and records the fastest; during the capture of a stream it does not
// measure and takes the library's first guess. The choice stays for the life of
// the object and does not depend on addresses: equal numbers give equal bits.
//
// Candidates are only algorithms with a fixed order of sums that do not add
// partial sums in a 16-bit dtype.
//
// Asynchronous: Run() returns when the work is queued on `stream`. Get() may
// wait for the GPU once for each spec; afterwards it costs a hash look-up.
// Threads: one at a time per object, the device's strand. Lifetime: plans live
// as long as the MatmulPlans; the objects in the options must outlive it.

#ifndef NN_KERNELS_CUDA_LIBRARIES_MATMUL_H_
#define NN_KERNELS_CUDA_LIBRARIES_MATMUL_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/kernels/cuda/libraries/library_options.h"
#include "nn/kernels/cuda/libraries/matmul_spec.h"

namespace troupe::nn::cuda {

class MatmulPlan {
 public:
  virtual ~MatmulPlan() = default;

  const MatmulSpec& spec() const { return spec_; }
  // Text of the algorithm, one word, as a choice cache stores it.
  const std::string& choice() const { return choice_; }
  // Bytes of the device memory that the caller passes to Run() as `workspace`;
  // only the work of that call uses it.
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  // Enqueues the computation on `stream`.
  //   kInvalidArgument: an operand is missing or not aligned.
  //   kInternal:        the library refused; names product and reason.
  virtual absl::Status Run(const MatmulOperands& operands, void* workspace,
                           cudaStream_t stream) = 0;

 protected:
  MatmulPlan(const MatmulSpec& spec, std::string choice,
             std::size_t workspace_bytes)
      : spec_(spec),
        choice_(std::move(choice)),
        workspace_bytes_(workspace_bytes) {}

 private:
  const MatmulSpec spec_;
  const std::string choice_;
  const std::size_t workspace_bytes_;
};

class MatmulPlans {
 public:
  virtual ~MatmulPlans() = default;

  // Returns the plan for `spec`; chooses it at the first call.
  //   kInvalidArgument: the spec's Check().
  //   kUnimplemented:   the library has no algorithm for it.
  //   kInternal:        the library or the device failed.
  virtual absl::StatusOr<MatmulPlan*> Get(const MatmulSpec& spec,
                                          cudaStream_t stream) = 0;
};

// Returns the library whose algorithms are chosen: "cuBLASLt 13.0.2" or
// "emulated products".
std::string MatmulLibraryName();

// Opens the library for the current device of the calling thread.
//   kUnavailable: no driver, or no device.
absl::StatusOr<std::unique_ptr<MatmulPlans>> OpenMatmulPlans(
    const LibraryOptions& options);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_MATMUL_H_
