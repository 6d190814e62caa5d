// Options of OpenMatmulPlans(), OpenConvPlans() and OpenAttentionPlans(): the
// device's allocator, its record of choices, and limits.
//
//   LibraryOptions options;
//   options.allocator = &allocator;
//   options.choices = &choices;
//   options.warn = [](absl::string_view line) { std::cerr << line << "\n"; };
//
// Lifetime: `allocator` and `choices` must outlive the plans.

#ifndef NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPTIONS_H_
#define NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPTIONS_H_

#include <cstddef>
#include <functional>

#include "absl/strings/string_view.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cuda {

struct LibraryOptions {
  Allocator* allocator = nullptr;  // device memory to measure in
  // Record of earlier choices and of those measured now, shared with other
  // ranks. Null: choices are forgotten with the plans.
  DeviceChoices* choices = nullptr;
  bool measure = true;  // false: takes the library's first guess
  // Limit on the algorithms that are measured for a product or an attention.
  int candidates_max = 8;
  // The same for a convolution, whose engines differ more in speed.
  int conv_candidates_max = 32;
  // Limits on the workspace of a candidate. cuBLAS advises 32 MiB on Hopper.
  std::size_t matmul_workspace_bytes_max = std::size_t{32} << 20;
  std::size_t conv_workspace_bytes_max = std::size_t{256} << 20;
  // On Hopper, gradients in a fixed order of sums need 2 T S bytes for each
  // head. If that is above the limit, a batch is computed in parts.
  std::size_t attention_workspace_bytes_max = std::size_t{512} << 20;
  // Called with a line for the log if the library refuses a recorded choice, if
  // there is no memory to measure in, or if an algorithm cannot be used.
  std::function<void(absl::string_view line)> warn = [](absl::string_view) {};
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPTIONS_H_
