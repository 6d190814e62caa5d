#include "nn/kernels/cpu/cpu_kernels.h"

#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/cpu_device.h"
#include "nn/kernels/cpu/linear.h"

namespace troupe::nn {
namespace {

class CpuKernels final : public Kernels {
 public:
  explicit CpuKernels(const CpuKernelOptions& options)
      : Kernels(Device{DeviceType::kCpu, 0}), cpu_(options) {
    cpu::BindLinear(cpu_, *this);
    cpu::BindAttention(cpu_, *this);
    cpu::BindRotary(cpu_, *this);
    cpu::BindConv2d(cpu_, *this);
    cpu::BindPool2d(cpu_, *this);
    cpu::BindNorm(cpu_, *this);
    cpu::BindBatchNorm(cpu_, *this);
    cpu::BindPad2d(cpu_, *this);
    cpu::BindBias(cpu_, *this);
    cpu::BindElementwise(cpu_, *this);
    cpu::BindDropout(cpu_, *this);
    cpu::BindEmbedding(cpu_, *this);
    cpu::BindLayout(cpu_, *this);
    cpu::BindLoss(cpu_, *this);
    cpu::BindOptimizer(cpu_, *this);
    cpu::BindUnary(cpu_, *this);
    cpu::BindBinary(cpu_, *this);
    cpu::BindSoftmax(cpu_, *this);
    cpu::BindReduction(cpu_, *this);
    cpu::BindMatMul(cpu_, *this);
    cpu::BindStrided(cpu_, *this);
  }

  CachingAllocator& allocator() override { return cpu_.allocator(); }
  std::int64_t LinearGradientRows(DType dtype, std::int64_t n, std::int64_t k,
                                  std::int64_t m) const override {
    return cpu::LinearGradientRows(cpu_, dtype, n, k, m);
  }
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
