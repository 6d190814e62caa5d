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
    ForEachFamily([this](auto& family) { cpu::BindFamily(cpu_, family); });
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
