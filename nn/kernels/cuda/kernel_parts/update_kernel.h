// The kernel that all optimizers share: one loop over the elements of a range.
// Before the loop, each thread derives its numbers from the step's scalars.
//
//   template <typename T>
//   struct Descend {
//     struct Step {
//       float lr;
//     };
//     const T* grad;
//     T* param;
//     __device__ Step StepOf(const StepScalars& scalars) const {
//       return {static_cast<float>(scalars.lr)};
//     }
//     template <int kCount>
//     __device__ void At(const Step& step, std::int64_t i) const {
//       auto p = Load<kCount>(param + i);
//       const auto g = Load<kCount>(grad + i);
//       for (int k = 0; k < kCount; ++k) p.at[k] -= step.lr * g.at[k];
//       Store(p, param + i);
//     }
//   };
//   status = LaunchUpdate<float>("Descend", cuda, n, scalars,
//                                IsAligned(grad) && IsAligned(param),
//                                Descend<float>{grad, param});

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_UPDATE_KERNEL_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_UPDATE_KERNEL_H_

#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/optimizer.h"

namespace troupe::nn::cuda {

// Runs body.At<kCount>(step, i) for all elements, or for none if the gradients
// are not finite. Each thread computes `step` once rather than for every
// vector, because that takes divisions in f64.
template <int kVector, typename Body>
__global__ void __launch_bounds__(kElementThreads)
    UpdateKernel(std::int64_t count, Body body, const StepScalars* scalars) {
  if (scalars->non_finite != 0) return;
  const typename Body::Step step = body.StepOf(*scalars);
  const std::int64_t vectors = count / kVector;
  for (std::int64_t v = ThreadOfGrid(); v < vectors; v += ThreadsOfGrid()) {
    body.template At<kVector>(step, v * kVector);
  }
  if constexpr (kVector > 1) {
    const std::int64_t i = vectors * kVector + ThreadOfGrid();
    if (i < count) body.template At<1>(step, i);
  }
}

inline const StepScalars* ScalarsOn(const Tensor& scalars) {
  return reinterpret_cast<const StepScalars*>(Data<double>(scalars));
}

// T is the type of the elements. `aligned`: every address is aligned or null.
template <typename T, typename Body>
absl::Status LaunchUpdate(base::KernelName name, const CudaOps& cuda,
                          std::int64_t count, const Tensor& scalars,
                          bool aligned, const Body& body) {
  if (count == 0) return absl::OkStatus();
  constexpr int kVector = kVectorOf<T>;
  return base::Launch(
      name, aligned ? UpdateKernel<kVector, Body> : UpdateKernel<1, Body>,
      GridOf(aligned ? count / kVector : count), cuda.stream, count, body,
      ScalarsOn(scalars));
}

// Device versions of StepScalars::Divisor() and, in f64 and in f32, of
// InverseDivisor().
__device__ __forceinline__ double DivisorOf(const StepScalars& scalars) {
  return (scalars.summed != 0 ? 1 : scalars.loss_count) * scalars.loss_scale;
}
__device__ __forceinline__ double MeanFactorOf(const StepScalars& scalars) {
  const double divisor = DivisorOf(scalars);
  return divisor == 0 ? 0 : scalars.grad_factor / divisor;
}
__device__ __forceinline__ float InverseDivisorOf(const StepScalars& scalars) {
  return static_cast<float>(MeanFactorOf(scalars));
}

// An AdamRule in the precision of the kernels.
struct Moments {
  double lr_factor, weight_decay;
  float one_minus_beta1, beta2, one_minus_beta2, eps;

  // Numbers that an update derives from the step's scalars.
  struct Step {
    float inverse_divisor;
    float inverse_root2;  // 1 / sqrt(bias_correction2)
    float step_size;
    float weight_decay;  // times the parameter, added to gradient or direction
    float shrink;        // multiplies a parameter before its step
  };

  __device__ __forceinline__ void Update(const Step&, float g, float& m,
                                         float& v) const {
    m = __fadd_rn(m, __fmul_rn(one_minus_beta1, __fsub_rn(g, m)));
    v = __fadd_rn(__fmul_rn(beta2, v),
                  __fmul_rn(__fmul_rn(one_minus_beta2, g), g));
  }
  __device__ __forceinline__ float Direction(const Step& step, float m,
                                             float v) const {
    const float root = __fmul_rn(__fsqrt_rn(v), step.inverse_root2);
    return __fdiv_rn(__fmul_rn(step.step_size, m), __fadd_rn(root, eps));
  }
};

inline Moments MomentsOf(const AdamRule& rule) {
  Moments rounded;
  rounded.lr_factor = rule.lr_factor;
  rounded.weight_decay = rule.weight_decay;
  rounded.one_minus_beta1 = static_cast<float>(1 - rule.beta1);
  rounded.beta2 = static_cast<float>(rule.beta2);
  rounded.one_minus_beta2 = static_cast<float>(1 - rule.beta2);
  rounded.eps = static_cast<float>(rule.eps);
  return rounded;
}

// Bind some of the ops of OptimizerKernels; BindFamily() calls them.
void BindLayerwiseOptimizers(OptimizerKernels& ops, CudaOps* state);
void BindClipping(OptimizerKernels& ops, CudaOps* state);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_UPDATE_KERNEL_H_
