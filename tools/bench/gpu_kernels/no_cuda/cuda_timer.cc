#include "tools/bench/gpu_kernels/kernel_timer.h"

namespace troupe::bench {

absl::StatusOr<std::unique_ptr<KernelTimer>> OpenCudaTimer(nn::Device, bool) {
  return absl::UnavailableError(
      "this program was built without CUDA; build it with --config=cuda");
}

}  // namespace troupe::bench
