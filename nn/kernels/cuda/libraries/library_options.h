// What a device gives the libraries of its products, convolutions and
// attention, for OpenMatmulPlans(), OpenConvPlans() and OpenAttentionPlans().
//
//   LibraryOptions options;
//   options.allocator = &allocator;
//   options.choices = &choices;
//   options.warn = [](absl::string_view line) { std::cerr << line << "\n"; };
//
// Lifetime: what it points to outlives the plans.

#ifndef NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPTIONS_H_
#define NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPTIONS_H_

#include <cstddef>
#include <functional>

#include "absl/strings/string_view.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cuda {

struct LibraryOptions {
  Allocator* allocator = nullptr;  // of the device, for what measuring needs
  // On record before, and what is measured now, shared with other ranks; null:
  // forgotten with the plans.
  DeviceChoices* choices = nullptr;
  bool measure = true;  // false: the library's first guess
  // Algorithms that are measured for a product or an attention.
  int candidates_max = 8;
  // A convolution's list is longer: its engines differ by more.
  int conv_candidates_max = 32;
  // No candidate needs more. 32 MiB is what cuBLAS advises on Hopper.
  std::size_t matmul_workspace_bytes_max = std::size_t{32} << 20;
  std::size_t conv_workspace_bytes_max = std::size_t{256} << 20;
  // Gradients in a fixed order of sums take 2 T S bytes for each head on
  // Hopper; a batch is computed in parts where that is more.
  std::size_t attention_workspace_bytes_max = std::size_t{512} << 20;
  // Takes a line for the log: a choice on record that the library refuses, or
  // that there is no memory to measure in.
  std::function<void(absl::string_view line)> warn = [](absl::string_view) {};
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPTIONS_H_
