#include "nn/kernels/cuda/libraries/conv_exactness.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "base/cuda/cuda_status.h"
#include "nn/kernels/cuda/libraries/direct_conv.h"
#include "nn/kernels/cuda/libraries/matrix_kernels.h"
#include "nn/tensor/storage.h"

namespace troupe::nn::cuda {
namespace {

// Limit on the compared elements. It is enough, because a lossy algorithm loses
// bits in all elements.
constexpr std::int64_t kComparedMax = std::int64_t{1} << 18;

// Returns the operand that the computation writes.
void* Written(const ConvSpec& spec, const ConvOperands& operands) {
  switch (spec.way) {
    case ConvWay::kForward:
      return operands.output;
    case ConvWay::kBackwardInput:
      return operands.image;
    case ConvWay::kBackwardWeight:
      return operands.weight;
  }
  TROUPE_CHECK(false, "every way writes something");
}

std::int64_t WrittenElems(const ConvSpec& spec) {
  switch (spec.way) {
    case ConvWay::kForward:
      return spec.output_elems();
    case ConvWay::kBackwardInput:
      return spec.image_elems();
    case ConvWay::kBackwardWeight:
      return spec.weight_elems();
  }
  TROUPE_CHECK(false, "every way writes something");
}

// Waits for `stream` and returns the first elements of the result.
absl::StatusOr<std::vector<float>> Read(const ConvSpec& spec,
                                        const ConvOperands& operands,
                                        cudaStream_t stream) {
  std::vector<float> values(
      static_cast<std::size_t>(std::min(kComparedMax, WrittenElems(spec))));
  TROUPE_RETURN_IF_ERROR(
      base::CudaStatus(cudaMemcpyAsync(values.data(), Written(spec, operands),
                                       values.size() * sizeof(float),
                                       cudaMemcpyDeviceToHost, stream),
                       "reading a convolution to compare"));
  TROUPE_RETURN_IF_ERROR(base::CudaStatus(cudaStreamSynchronize(stream),
                                          "comparing convolutions"));
  return values;
}

// Returns ||values - exact|| / ||exact||; infinity if a value is NaN.
double RelativeError(const std::vector<float>& values,
                     const std::vector<float>& exact) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double gap = static_cast<double>(values[i]) - exact[i];
    error += gap * gap;
    norm += static_cast<double>(exact[i]) * exact[i];
  }
  const double relative = std::sqrt(error / std::max(norm, 1e-300));
  return std::isnan(relative) ? std::numeric_limits<double>::infinity()
                              : relative;
}

absl::Status PlainSums(const ConvSpec& spec, bool adds_bias,
                       const ConvOperands& operands, void* scratch,
                       cudaStream_t stream) {
  TROUPE_RETURN_IF_ERROR(DirectConv(spec, operands, scratch, stream));
  if (!adds_bias) return absl::OkStatus();
  return AddRowVector({spec.N * spec.P() * spec.Q(), spec.O},
                      {spec.dtype, operands.bias},
                      {spec.out_dtype, operands.output}, stream);
}

}  // namespace

double InexactFrom(const ConvSpec& spec) {
  const std::int64_t taps = spec.window.kernel_h * spec.window.kernel_w;
  std::int64_t terms = taps * spec.group_channels();
  if (spec.way == ConvWay::kBackwardInput) {
    terms = taps * spec.O / spec.groups;
  } else if (spec.way == ConvWay::kBackwardWeight) {
    terms = spec.N * spec.P() * spec.Q();
  }
  return (16 + std::sqrt(static_cast<double>(terms))) * 0x1p-24;
}

absl::Status DropInexact(
    const std::vector<std::unique_ptr<ConvPlan>>& candidates,
    const ConvOperands& operands, Allocator& allocator, cudaStream_t stream,
    std::vector<CandidateTimes>& times) {
  if (candidates.empty()) return absl::OkStatus();
  const ConvSpec& spec = candidates[0]->spec();
  std::size_t scratch_bytes =
      std::max<std::size_t>(1, DirectConvScratchBytes(spec));
  for (const auto& candidate : candidates) {
    scratch_bytes = std::max(scratch_bytes, candidate->workspace_bytes());
  }
  TROUPE_ASSIGN_OR_RETURN(const StoragePtr scratch,
                          allocator.Allocate(scratch_bytes));
  TROUPE_RETURN_IF_ERROR(PlainSums(spec, candidates[0]->adds_bias(), operands,
                                   scratch->data(), stream));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<float> exact,
                          Read(spec, operands, stream));
  std::vector<double> errors(candidates.size(),
                             std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (times[i].empty()) continue;
    if (!candidates[i]->Run(operands, scratch->data(), stream).ok()) continue;
    TROUPE_ASSIGN_OR_RETURN(const std::vector<float> values,
                            Read(spec, operands, stream));
    errors[i] = RelativeError(values, exact);
  }
  const double bound = std::max(
      InexactFrom(spec), *std::min_element(errors.begin(), errors.end()));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (errors[i] > bound) times[i].clear();
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn::cuda
