// Options for opening the kernel set of a device.
//
//   KernelOptions options;
//   options.threads = 2;
//   options.choices = process_choices;     // std::shared_ptr<KernelChoices>
//   status = OpenKernels(device, options).status();

#ifndef NN_KERNELS_KERNEL_OPTIONS_H_
#define NN_KERNELS_KERNEL_OPTIONS_H_

#include <memory>

#include "nn/kernels/kernel_choices.h"

namespace troupe::nn {

struct KernelOptions {
  // Number of threads that one call may use; part of the plan, since it can
  // change bits.
  int threads = 1;
  // Algorithms that the kernel sets of a process share, part of the plan too;
  // null: each set chooses for itself, and does not record its choices.
  std::shared_ptr<KernelChoices> choices;
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_KERNEL_OPTIONS_H_
