#include "tools/bench/gpu_kernels/kernel_timer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "tools/bench/gpu_kernels/kernel_call.h"
#include "tools/bench/ops/op_bench_util.h"

namespace troupe::bench {
namespace {

// Runs the benchmark on one thread of a CPU, to try it without a GPU.
class CpuTimer final : public KernelTimer {
 public:
  CpuTimer() : kernels_(nn::CreateCpuKernels({})) {}

  std::string Gpu() const override { return ""; }

  absl::Status Prepare(const KernelCase& c, nn::DType dtype) override {
    if (dtype != nn::DType::kF32) {
      return absl::UnimplementedError(
          "a CPU is timed in f32 alone; set --dtype=f32");
    }
    run_ = CallOf(
        c,
        {Numbers(ShapeOfX(c), *kernels_), Numbers(ShapeOfW(c), *kernels_),
         Numbers(ShapeOfY(c), *kernels_)},
        *kernels_);
    return run_();
  }

  absl::StatusOr<KernelTimes> Measure(double seconds) override {
    using Clock = std::chrono::steady_clock;
    KernelTimes times;
    double spent = 0;
    while (spent < seconds || times.ours.empty()) {
      const auto begin = Clock::now();
      TROUPE_RETURN_IF_ERROR(run_());
      const std::chrono::duration<double> took = Clock::now() - begin;
      times.ours.push_back(took.count() * 1e6);
      spent += took.count();
    }
    return times;
  }

 private:
  const std::unique_ptr<nn::Kernels> kernels_;
  std::function<absl::Status()> run_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KernelTimer>> OpenKernelTimer(
    const std::string& text, bool allow_tf32) {
  TROUPE_ASSIGN_OR_RETURN(const nn::Device device, nn::Device::Parse(text));
  if (device.type == nn::DeviceType::kCpu) return std::make_unique<CpuTimer>();
  if (device.type == nn::DeviceType::kCuda) {
    return OpenCudaTimer(device.ForRank(/*local_rank=*/0), allow_tf32);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--device=", text, ": must be cuda:N or cpu:0"));
}

}  // namespace troupe::bench
