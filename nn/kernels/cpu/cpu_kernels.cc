#include "nn/kernels/cpu/cpu_kernels.h"

#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/cpu_device.h"

namespace troupe::nn {
namespace {

class CpuKernels final : public Kernels {
 public:
  explicit CpuKernels(const CpuKernelOptions& options)
      : Kernels(Device{DeviceType::kCpu, 0}), cpu_(options) {
    cpu::BindLinear(cpu_, *this);
    cpu::BindConv2d(cpu_, *this);
    cpu::BindPool2d(cpu_, *this);
    cpu::BindElementwise(cpu_, *this);
    cpu::BindDropout(cpu_, *this);
    cpu::BindEmbedding(cpu_, *this);
    cpu::BindLayout(cpu_, *this);
    cpu::BindLoss(cpu_, *this);
    cpu::BindOptimizer(cpu_, *this);
  }

  CachingAllocator& allocator() override { return cpu_.allocator(); }
  std::string Describe() const override {
    return absl::StrCat(device().ToString(), ", ", cpu_.Describe());
  }

 private:
  cpu::CpuDevice cpu_;
};

}  // namespace

std::unique_ptr<Kernels> CreateCpuKernels(const CpuKernelOptions& options) {
  return std::make_unique<CpuKernels>(options);
}

}  // namespace troupe::nn
