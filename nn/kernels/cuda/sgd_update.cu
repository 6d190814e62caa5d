#include "nn/kernels/cuda/sgd_update.h"

#include <algorithm>

#include "base/cuda/launch.h"

namespace troupe::nn {
namespace {

constexpr int kThreadsPerBlock = 256;
// Enough blocks to fill every GPU of today; the loop in the kernel does the
// rest.
constexpr std::int64_t kBlocksMax = 4096;

// SgdRule in the precision of the kernel.
struct Rule {
  double lr_factor;
  float weight_decay;
  float momentum;
  float one_minus_dampening;
};

// __fmul_rn and __fadd_rn are never contracted into a fused multiply-add.
template <bool kMomentum, bool kNesterov, bool kWeightDecay>
__global__ void SgdKernel(Rule s, CudaSgdRange range) {
  const StepScalars& step = *range.scalars;
  if (step.non_finite != 0) return;
  const double divisor = __dmul_rn(step.loss_count, step.loss_scale);
  const float inv_divisor =
      static_cast<float>(step.loss_count == 0 ? 0 : __drcp_rn(divisor));
  const float minus_lr = static_cast<float>(-__dmul_rn(step.lr, s.lr_factor));
  const bool first_step = step.step == 0;
  const std::int64_t stride =
      static_cast<std::int64_t>(gridDim.x) * kThreadsPerBlock;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * kThreadsPerBlock +
           threadIdx.x;
       i < range.count_elems; i += stride) {
    const float p = range.param[i];
    float g = __fmul_rn(range.grad[i], inv_divisor);
    if (kWeightDecay) g = __fadd_rn(g, __fmul_rn(s.weight_decay, p));
    if (kMomentum) {
      float buf = g;
      if (!first_step) {
        buf = __fadd_rn(__fmul_rn(s.momentum, range.momentum[i]),
                        __fmul_rn(s.one_minus_dampening, g));
      }
      range.momentum[i] = buf;
      g = kNesterov ? __fadd_rn(g, __fmul_rn(s.momentum, buf)) : buf;
    }
    range.param[i] = __fadd_rn(p, __fmul_rn(minus_lr, g));
  }
}

using Kernel = void (*)(Rule, CudaSgdRange);

template <bool kMomentum, bool kNesterov>
Kernel ChooseWeightDecay(const SgdRule& rule) {
  return rule.weight_decay == 0 ? SgdKernel<kMomentum, kNesterov, false>
                                : SgdKernel<kMomentum, kNesterov, true>;
}

Kernel ChooseKernel(const SgdRule& rule) {
  if (rule.momentum == 0) return ChooseWeightDecay<false, false>(rule);
  return rule.nesterov ? ChooseWeightDecay<true, true>(rule)
                       : ChooseWeightDecay<true, false>(rule);
}

}  // namespace

absl::Status CudaSgdUpdate(const SgdRule& rule, const CudaSgdRange& range,
                           cudaStream_t stream) {
  if (range.count_elems == 0) return absl::OkStatus();
  if (range.scalars == nullptr || range.grad == nullptr ||
      range.param == nullptr ||
      (range.momentum == nullptr && rule.momentum != 0)) {
    return absl::InvalidArgumentError(
        "CudaSgdUpdate: scalars, grad, param and, with momentum, its buffer "
        "are needed");
  }
  Rule s;
  s.lr_factor = rule.lr_factor;
  s.weight_decay = static_cast<float>(rule.weight_decay);
  s.momentum = static_cast<float>(rule.momentum);
  s.one_minus_dampening = static_cast<float>(1.0 - rule.dampening);

  const std::int64_t blocks =
      std::min(kBlocksMax,
               (range.count_elems + kThreadsPerBlock - 1) / kThreadsPerBlock);
  base::LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(blocks));
  shape.block = dim3(kThreadsPerBlock);
  return base::Launch("CudaSgdUpdate", ChooseKernel(rule), shape, stream, s,
                      range);
}

}  // namespace troupe::nn
