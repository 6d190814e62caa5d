#include <algorithm>

#include "nn/kernels/cuda/cuda_status.h"
#include "nn/kernels/cuda/sgd_update.h"

namespace troupe::nn {
namespace {

constexpr int kThreadsPerBlock = 256;
// Enough blocks to fill every GPU of today; the loop in the kernel does the
// rest.
constexpr std::int64_t kBlocksMax = 4096;

// SgdStep in the precision of the kernel.
struct Scalars {
  float inv_divisor;
  float weight_decay;
  float momentum;
  float one_minus_dampening;
  float minus_lr;
};

enum class Momentum { kNone, kFirstStep, kPlain };

// __fmul_rn and __fadd_rn are never contracted into a fused multiply-add.
template <Momentum kMomentum, bool kNesterov, bool kWeightDecay>
__global__ void SgdKernel(Scalars s, CudaSgdRange range) {
  const std::int64_t stride =
      static_cast<std::int64_t>(gridDim.x) * kThreadsPerBlock;
  for (std::int64_t i =
           static_cast<std::int64_t>(blockIdx.x) * kThreadsPerBlock +
           threadIdx.x;
       i < range.count_elems; i += stride) {
    const float p = range.param[i];
    float g = __fmul_rn(range.grad[i], s.inv_divisor);
    if (kWeightDecay) g = __fadd_rn(g, __fmul_rn(s.weight_decay, p));
    if (kMomentum != Momentum::kNone) {
      float buf = g;
      if (kMomentum == Momentum::kPlain) {
        buf = __fadd_rn(__fmul_rn(s.momentum, range.momentum[i]),
                        __fmul_rn(s.one_minus_dampening, g));
      }
      range.momentum[i] = buf;
      g = kNesterov ? __fadd_rn(g, __fmul_rn(s.momentum, buf)) : buf;
    }
    range.param[i] = __fadd_rn(p, __fmul_rn(s.minus_lr, g));
  }
}

using Kernel = void (*)(Scalars, CudaSgdRange);

template <Momentum kMomentum, bool kNesterov>
Kernel ChooseWeightDecay(const SgdStep& step) {
  return step.weight_decay == 0 ? SgdKernel<kMomentum, kNesterov, false>
                                : SgdKernel<kMomentum, kNesterov, true>;
}

template <Momentum kMomentum>
Kernel ChooseNesterov(const SgdStep& step) {
  return step.nesterov ? ChooseWeightDecay<kMomentum, true>(step)
                       : ChooseWeightDecay<kMomentum, false>(step);
}

Kernel ChooseKernel(const SgdStep& step) {
  if (step.momentum == 0) {
    return ChooseWeightDecay<Momentum::kNone, false>(step);
  }
  return step.first_step ? ChooseNesterov<Momentum::kFirstStep>(step)
                         : ChooseNesterov<Momentum::kPlain>(step);
}

}  // namespace

absl::Status CudaSgdUpdate(const SgdStep& step, const CudaSgdRange& range,
                           cudaStream_t stream) {
  if (range.count_elems == 0) return absl::OkStatus();
  if (range.grad == nullptr || range.param == nullptr ||
      (range.momentum == nullptr && step.momentum != 0)) {
    return absl::InvalidArgumentError(
        "CudaSgdUpdate: grad, param and, with momentum, its buffer are needed");
  }
  Scalars s;
  s.inv_divisor = static_cast<float>(step.InverseDivisor());
  s.weight_decay = static_cast<float>(step.weight_decay);
  s.momentum = static_cast<float>(step.momentum);
  s.one_minus_dampening = static_cast<float>(1.0 - step.dampening);
  s.minus_lr = static_cast<float>(-step.lr);

  const std::int64_t blocks =
      std::min(kBlocksMax,
               (range.count_elems + kThreadsPerBlock - 1) / kThreadsPerBlock);
  ChooseKernel(step)<<<static_cast<unsigned>(blocks), kThreadsPerBlock,
                       /*shared_bytes=*/0, stream>>>(s, range);
  return CudaStatus(cudaGetLastError(), "CudaSgdUpdate");
}

}  // namespace troupe::nn
