#include "nn/kernels/cpu/cpu_kernels.h"

#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/cpu_kernel_set.h"

namespace troupe::nn {

CpuIsa BestCpuIsa() { return CpuIsa::kPlain; }

std::unique_ptr<Kernels> CreateCpuKernels(const CpuKernelOptions& options) {
  return std::make_unique<cpu::CpuKernelSet>(options);
}

namespace cpu {

CpuKernelSet::CpuKernelSet(const CpuKernelOptions& options)
    : options_(options), loops_(PlainLoops()) {}

std::string CpuKernelSet::Describe() const {
  return absl::StrCat(device().ToString(), ", ", loops_.name, ", ",
                      options_.threads,
                      options_.threads == 1 ? " thread" : " threads");
}

absl::Status CpuKernelSet::Unsupported(absl::string_view op,
                                       const Tensor& t) const {
  return absl::UnimplementedError(absl::StrCat(op, " does not compute ",
                                               DTypeName(t.dtype()), " on ",
                                               device().ToString()));
}

float* CpuKernelSet::Scratch(std::int64_t floats) {
  const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  if (!scratch_ || scratch_->bytes() < bytes) {
    scratch_.reset();
    scratch_ = allocator_.Allocate(bytes);
  }
  return static_cast<float*>(scratch_->data());
}

}  // namespace cpu
}  // namespace troupe::nn
