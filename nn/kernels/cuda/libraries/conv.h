// Convolutions on a GPU, behind one narrow interface: cudnn_conv.cc implements
// it by cuDNN's graph API, emulated_conv.cc by plain loops for tests that
// emulate CUDA.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ConvPlans> plans,
//                           OpenConvPlans(options));
//   TROUPE_ASSIGN_OR_RETURN(ConvPlan* plan, plans->Get(spec, stream));
//   TROUPE_ASSIGN_OR_RETURN(
//       StoragePtr workspace,
//       options.allocator->Allocate(plan->workspace_bytes()));
//   ConvOperands operands;
//   operands.image = x, operands.weight = w_ORSC, operands.output = y;
//   status = plan->Run(operands, workspace->data(), stream);
//
// Results are overwritten, never added to. Choice, order of sums, streams,
// threads and lifetime are the same as in matmul.h.

#ifndef NN_KERNELS_CUDA_LIBRARIES_CONV_H_
#define NN_KERNELS_CUDA_LIBRARIES_CONV_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/kernels/cuda/libraries/conv_spec.h"
#include "nn/kernels/cuda/libraries/library_options.h"

namespace troupe::nn::cuda {

class ConvPlan {
 public:
  virtual ~ConvPlan() = default;

  const ConvSpec& spec() const { return spec_; }
  // Text of the algorithm, one word, as a choice cache stores it.
  const std::string& choice() const { return choice_; }
  // Bytes of the device memory that the caller passes to Run() as `workspace`;
  // only the work of that call uses it.
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Whether Run() adds the bias. If the spec has a bias and this is false, the
  // caller adds it to the output after Run().
  bool adds_bias() const { return adds_bias_; }

  // Enqueues the computation on `stream`.
  //   kInvalidArgument: an operand is missing or not aligned.
  //   kInternal:        the library refused; names convolution and reason.
  virtual absl::Status Run(const ConvOperands& operands, void* workspace,
                           cudaStream_t stream) = 0;

 protected:
  ConvPlan(const ConvSpec& spec, std::string choice,
           std::size_t workspace_bytes, bool adds_bias)
      : spec_(spec),
        choice_(std::move(choice)),
        workspace_bytes_(workspace_bytes),
        adds_bias_(spec.bias && adds_bias) {}

 private:
  const ConvSpec spec_;
  const std::string choice_;
  const std::size_t workspace_bytes_;
  const bool adds_bias_;
};

class ConvPlans {
 public:
  virtual ~ConvPlans() = default;

  // Returns the plan for `spec`; chooses it at the first call.
  //   kInvalidArgument: the spec's Check().
  //   kUnimplemented:   the library has no algorithm for it.
  //   kInternal:        the library or the device failed.
  virtual absl::StatusOr<ConvPlan*> Get(const ConvSpec& spec,
                                        cudaStream_t stream) = 0;
};

// Returns the library whose algorithms are chosen: "cuDNN 9.19.0" or "emulated
// convolutions".
std::string ConvLibraryName();

// Opens the library for the current device of the calling thread.
//   kUnavailable: no driver, or no device.
absl::StatusOr<std::unique_ptr<ConvPlans>> OpenConvPlans(
    const LibraryOptions& options);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CONV_H_
