// Matrix products on a GPU, behind one narrow seam: cublaslt_matmul.cc brings
// them by cuBLASLt, emulated_matmul.cu by plain loops where tests emulate CUDA.
// Which of them it is, is decided when a program is linked.
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
// Choice: a product can be computed by several algorithms, which differ in
// speed and in last bits. The first Get() of a spec takes the choice on record
// (kernel_choices.h) or, where there is none, measures candidates on memory of
// its own and records the fastest; while a stream captures it measures nothing
// and takes the library's first guess. What was chosen stays for the life of
// the object, at any address: equal numbers give equal bits.
//
// Only algorithms with a fixed order of sums are candidates, and none that adds
// parts in a 16-bit dtype.
//
// Asynchronous: Run() returns when the work is queued on `stream`. Get() may
// wait for the GPU once for each spec. Cost of Get() after that: a look-up.
// Threads: one at a time per object, the device's strand. Lifetime: plans live
// as long as the MatmulPlans; options' objects outlive it.

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
  // One word, as a choice cache holds it.
  const std::string& choice() const { return choice_; }
  // Of device memory, which only Run()'s work on its stream uses.
  std::size_t workspace_bytes() const { return workspace_bytes_; }

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

  //   kInvalidArgument: the spec's Check().
  //   kUnimplemented:   the library has no algorithm for it.
  //   kInternal:        the library or the device failed.
  virtual absl::StatusOr<MatmulPlan*> Get(const MatmulSpec& spec,
                                          cudaStream_t stream) = 0;
};

// "cuBLASLt 13.0.2", "emulated products": whose choices are made.
std::string MatmulLibraryName();

// For the device that is current in the calling thread.
//   kUnavailable: no driver, or no device.
absl::StatusOr<std::unique_ptr<MatmulPlans>> OpenMatmulPlans(
    const LibraryOptions& options);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_MATMUL_H_
