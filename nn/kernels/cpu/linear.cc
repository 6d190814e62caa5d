#include "nn/kernels/cpu/linear.h"

#include <algorithm>

#include "nn/kernels/cpu/bf16_kernels.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {
using Way = OneDnn::Way;
}  // namespace

absl::Status LinearForward(CpuDevice& cpu, In x, In w, In b, Tensor& y) {
  const std::int64_t n = x.dim(0), k = x.dim(1), m = w.dim(0);
  if (cpu.uses_onednn() &&
      OneDnn::WantsLinear(Way::kForward, cpu.threads(), n, k, m)) {
    for (std::int64_t i = 0; b.defined() && i < n; ++i) {
      std::copy_n(b.data<float>(), m, y.data<float>() + i * m);
    }
    return cpu.onednn().Linear(Way::kForward, n, k, m, x.data<float>(),
                               w.data<float>(), /*accumulate=*/b.defined(),
                               y.data<float>());
  }
  if (cpu.uses_onednn() &&
      OneDnn::WantsLinear(Way::kBackwardInput, cpu.threads(), n, k, m)) {
    cpu.onednn().PrepareLinear();  // until backward gets there
  }
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().linear_scratch(n, k, m)));
  cpu.loops().linear_forward(n, k, m, x.data<float>(), w.data<float>(),
                             DataOrNull(b), y.data<float>(), scratch);
  return absl::OkStatus();
}

absl::Status LinearBackwardInput(CpuDevice& cpu, In dy, In w, Tensor& dx) {
  const std::int64_t n = dy.dim(0), k = w.dim(1), m = w.dim(0);
  if (cpu.uses_onednn() &&
      OneDnn::WantsLinear(Way::kBackwardInput, cpu.threads(), n, k, m)) {
    return cpu.onednn().Linear(Way::kBackwardInput, n, k, m, dy.data<float>(),
                               w.data<float>(), /*accumulate=*/false,
                               dx.data<float>());
  }
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().linear_scratch(n, k, m)));
  cpu.loops().linear_backward_input(n, k, m, dy.data<float>(), w.data<float>(),
                                    dx.data<float>(), scratch);
  return absl::OkStatus();
}

absl::Status LinearBackwardWeight(CpuDevice& cpu, In x, In dy, bool accumulate,
                                  Tensor& dw, Tensor& db) {
  const std::int64_t n = x.dim(0), k = x.dim(1), m = dy.dim(1);
  if (cpu.uses_onednn() &&
      OneDnn::WantsLinear(Way::kBackwardWeight, cpu.threads(), n, k, m)) {
    TROUPE_RETURN_IF_ERROR(
        cpu.onednn().Linear(Way::kBackwardWeight, n, k, m, x.data<float>(),
                            dy.data<float>(), accumulate, dw.data<float>()));
  } else {
    TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                            cpu.Scratch(cpu.loops().linear_scratch(n, k, m)));
    cpu.loops().linear_backward_weight(n, k, m, x.data<float>(),
                                       dy.data<float>(), accumulate,
                                       dw.data<float>(), scratch);
  }
  if (db.defined()) {
    cpu.loops().column_sums(n, m, dy.data<float>(), accumulate,
                            db.data<float>());
  }
  return absl::OkStatus();
}

void BindLinear(CpuDevice& cpu, LinearKernels& ops) {
  BindF32AndBF16<LinearForward, LinearForwardBF16>(cpu, ops.LinearForward);
  BindF32AndBF16<LinearBackwardInput, LinearBackwardInputBF16>(
      cpu, ops.LinearBackwardInput);
  BindF32AndBF16<LinearBackwardWeight, LinearBackwardWeightBF16>(
      cpu, ops.LinearBackwardWeight);
}

}  // namespace troupe::nn::cpu
