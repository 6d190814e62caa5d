// Times one case on one device: Troupe's own op, and the fastest algorithm of
// the device's library.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<KernelTimer> timer,
//                           OpenKernelTimer("cuda:0", /*allow_tf32=*/false));
//   TROUPE_RETURN_IF_ERROR(timer->Prepare(c, nn::DType::kBF16));
//   for (int round = 0; round < 5; ++round) {
//     TROUPE_ASSIGN_OR_RETURN(KernelTimes times, timer->Measure(0.05));
//   }
//
// Troupe's op is the one that a network calls, with the algorithm that its
// autotuning chose. "The library" is the fastest of many more algorithms, with
// more workspace, called directly on operands in the layout that suits it best.
//
// Threads: one.

#ifndef TOOLS_BENCH_GPU_KERNELS_KERNEL_TIMER_H_
#define TOOLS_BENCH_GPU_KERNELS_KERNEL_TIMER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/tensor/device.h"
#include "tools/bench/gpu_kernels/kernel_case.h"

namespace troupe::bench {

// Time of a run in microseconds, one value for each sample.
struct KernelTimes {
  std::vector<double> ours;
  std::vector<double> library;  // empty if there is no other algorithm
};

class KernelTimer {
 public:
  virtual ~KernelTimer() = default;

  // Returns "cuda:0, NVIDIA H200, ..."; empty if the CPU computes.
  virtual std::string Gpu() const = 0;
  // Allocates memory, fills operands and chooses algorithms for Measure().
  //   kUnimplemented: the device has no such op; the message names it.
  virtual absl::Status Prepare(const KernelCase& c, nn::DType dtype) = 0;
  // Measures the contestants in turns, for about `seconds` each.
  virtual absl::StatusOr<KernelTimes> Measure(double seconds) = 0;
};

// Opens the timer of a device, "cuda:0" or "cpu:0".
//   kInvalidArgument: no such device.
//   kUnavailable:     no driver, no such GPU, or built without CUDA.
absl::StatusOr<std::unique_ptr<KernelTimer>> OpenKernelTimer(
    const std::string& device, bool allow_tf32);

// OpenKernelTimer() for a GPU; returns kUnavailable in a build without CUDA.
absl::StatusOr<std::unique_ptr<KernelTimer>> OpenCudaTimer(nn::Device device,
                                                           bool allow_tf32);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_GPU_KERNELS_KERNEL_TIMER_H_
