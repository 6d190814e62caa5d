// Convolutions on a GPU, behind one narrow seam: cudnn_conv.cc brings them by
// cuDNN's graph API, emulated_conv.cu by plain loops where tests emulate CUDA.
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
// threads and lifetime are those of matmul.h.

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
  // One word, as a choice cache holds it.
  const std::string& choice() const { return choice_; }
  // Of device memory, which only Run()'s work on its stream uses.
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // False where the spec has no bias, and where it has one that the library
  // does not add: whoever runs the plan adds it to the output afterwards.
  bool adds_bias() const { return adds_bias_; }

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

  //   kInvalidArgument: the spec's Check().
  //   kUnimplemented:   the library has no algorithm for it.
  //   kInternal:        the library or the device failed.
  virtual absl::StatusOr<ConvPlan*> Get(const ConvSpec& spec,
                                        cudaStream_t stream) = 0;
};

// "cuDNN 9.19.0", "emulated convolutions": whose choices are made.
std::string ConvLibraryName();

// For the device that is current in the calling thread.
//   kUnavailable: no driver, or no device.
absl::StatusOr<std::unique_ptr<ConvPlans>> OpenConvPlans(
    const LibraryOptions& options);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CONV_H_
