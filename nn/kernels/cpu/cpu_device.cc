#include "nn/kernels/cpu/cpu_device.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn::cpu {
namespace {

const Loops& LoopsFor(base::CpuIsa isa) {
  // An instruction set that the CPU lacks is lowered to one that it has.
  switch (std::min(isa, base::BestCpuIsa())) {
    case base::CpuIsa::kAvx512:
      return Avx512Loops();
    case base::CpuIsa::kAvx2:
      return Avx2Loops();
    case base::CpuIsa::kPlain:
      break;
  }
  return PlainLoops();
}

}  // namespace

CpuDevice::CpuDevice(const CpuKernelOptions& options)
    : options_(options),
      loops_(LoopsFor(options.isa)),
      bf16_loops_(options.isa >= base::CpuIsa::kAvx512 && options.bf16 &&
                          base::CpuMultipliesBF16()
                      ? &Avx512BF16Loops()
                      : nullptr),
      uses_onednn_(options.onednn && options.isa >= base::BestCpuIsa()),
      uses_bf16_tiles_(uses_onednn_ && bf16_loops_ != nullptr &&
                       base::CpuMultipliesBF16Tiles()),
      allocator_({/*cached_bytes_max=*/std::size_t{1} << 30, Device{},
                  options.memory, /*cached_of_peak_max=*/2}) {}

OneDnn& CpuDevice::onednn() {
  if (!onednn_) {
    onednn_ = std::make_unique<OneDnn>(options_.threads, allocator_);
  }
  return *onednn_;
}

absl::StatusOr<float*> CpuDevice::Scratch(std::int64_t floats) {
  const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  if (!scratch_ || scratch_->bytes() < bytes) {
    scratch_.reset();
    TROUPE_ASSIGN_OR_RETURN(scratch_, allocator_.Allocate(bytes));
  }
  return static_cast<float*>(scratch_->data());
}

std::string CpuDevice::Describe() const {
  return absl::StrCat(
      loops_.name, bf16_loops_ ? " with bf16" : "",
      uses_bf16_tiles_ ? " and AMX" : "", ", ", options_.threads,
      options_.threads == 1 ? " thread" : " threads", uses_onednn_ ? ", " : "",
      uses_onednn_ ? OneDnn::Version() : "");
}

}  // namespace troupe::nn::cpu
