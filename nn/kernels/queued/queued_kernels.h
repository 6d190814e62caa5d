// The kernel set "queued": another set's kernels, in the memory and on the
// queues of a QueuedDevice. For tests: a training that has the bits of the
// inner set on it, under all seeds, has every wait that a GPU would need.
//
//   auto memory = std::make_shared<GuardedMemory>(/*bytes_max=*/64 << 20);
//   std::unique_ptr<Kernels> kernels =
//       CreateQueuedKernels(CreateCpuKernels({}), memory, /*seed=*/7);
//
// Every op of every family is enqueued; events report its errors.

#ifndef NN_KERNELS_QUEUED_QUEUED_KERNELS_H_
#define NN_KERNELS_QUEUED_QUEUED_KERNELS_H_

#include <cstdint>
#include <memory>

#include "nn/kernels/kernels.h"
#include "nn/kernels/queued/guarded_memory.h"

namespace troupe::nn {

// `inner` computes on host memory.
std::unique_ptr<Kernels> CreateQueuedKernels(
    std::unique_ptr<Kernels> inner, std::shared_ptr<GuardedMemory> memory,
    std::uint64_t seed);

// Returns the same memory as the host sees it while it is open, for the
// device's own work. Holds no reference: `tensor` must outlive it.
Tensor HostView(const Tensor& tensor);

}  // namespace troupe::nn

#endif  // NN_KERNELS_QUEUED_QUEUED_KERNELS_H_
