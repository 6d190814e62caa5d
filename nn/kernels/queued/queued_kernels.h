// The kernel set "queued": another set's kernels, in the memory and on the
// queues of a QueuedDevice. For tests: what trains on it with the bits of the
// inner set, under all seeds, waits for all that a GPU would need.
//
//   auto memory = std::make_shared<GuardedMemory>(/*bytes_max=*/64 << 20);
//   std::unique_ptr<Kernels> kernels =
//       CreateQueuedKernels(CreateCpuKernels({}), memory, /*seed=*/7);
//
// Every op of every family is enqueued; its errors come with events.

#ifndef NN_KERNELS_QUEUED_QUEUED_KERNELS_H_
#define NN_KERNELS_QUEUED_QUEUED_KERNELS_H_

#include <cstdint>
#include <memory>

#include "nn/kernels/kernels.h"
#include "nn/kernels/queued/guarded_memory.h"

namespace troupe::nn {

// `inner` computes on memory of the host.
std::unique_ptr<Kernels> CreateQueuedKernels(
    std::unique_ptr<Kernels> inner, std::shared_ptr<GuardedMemory> memory,
    std::uint64_t seed);

// The same memory as the host sees it while it is open: what the device's own
// work gets. Holds nothing: `tensor` must outlive it.
Tensor HostView(const Tensor& tensor);

}  // namespace troupe::nn

#endif  // NN_KERNELS_QUEUED_QUEUED_KERNELS_H_
