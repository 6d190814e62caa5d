#include "nn/kernels/unary.h"

#include <cmath>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/element_formulas.h"

namespace troupe::nn::cuda {
namespace {

// Floats, as numbers of the formulas.
struct FloatMath {
  using Number = float;
  struct NormalValues {
    float distribution, density;
  };

  static float Set(float p) { return p; }
  static __device__ float Exp(float x) { return expf(x); }
  static __device__ float Log(float x) { return logf(x); }
  static __device__ float SquareRoot(float x) { return sqrtf(x); }
  static __device__ float Tanh(float x) { return tanhf(x); }
  static __device__ float Sigmoid(float x) { return 1 / (1 + expf(-x)); }
  static __device__ float Sine(float x) { return sinf(x); }
  static __device__ float Cosine(float x) { return cosf(x); }
  static __device__ float Magnitude(float x) { return fabsf(x); }
  static __device__ float Power(float x, float p) { return powf(x, p); }
  static __device__ float Negative(float x) { return -x; }
  static __device__ float MultiplyAdd(float a, float b, float c) {
    return c + a * b;
  }
  static __device__ float SquareAdd(float x, float a, float c) {
    return c + a * x * x;
  }
  static __device__ float IfPositive(float x, float a, float b) {
    return x > 0 ? a : b;
  }
  static __device__ float NormalDistribution(float x) {
    return 0.5f * erfcf(x * -0.70710678f);
  }
  static __device__ NormalValues Normal(float x) {
    const float density = 0.39894228f * expf(-0.5f * x * x);
    return {NormalDistribution(x), density};
  }
};

// Returns launch(function) for the formula of `f` with parameter `p`.
template <typename Launch>
absl::Status WithFormula(UnaryFunction f, double p, Launch launch) {
  absl::Status status = absl::InternalError("no such function");
  WithUnary<FloatMath>(f, static_cast<float>(p), [&](auto function) {
    // Without the cast, nvcc warns of an ignored Status.
    static_cast<void>(status = launch(function));
  });
  return status;
}

template <typename T, typename Function>
struct ForwardBody {
  Function function;
  const T* x;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    Numbers<float, kCount> v = Load<kCount>(x + i);
    for (float& value : v.at) value = function.At(value);
    Store(v, y + i);
  }
};

template <typename T, typename Function>
struct BackwardBody {
  Function function;
  const T* saved;
  const T* dy;
  T* dx;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    const Numbers<float, kCount> at = Load<kCount>(saved + i);
    Numbers<float, kCount> v = Load<kCount>(dy + i);
    for (int k = 0; k < kCount; ++k)
      v.at[k] = function.Slope(at.at[k], v.at[k]);
    Store(v, dx + i);
  }
};

struct UnaryForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, UnaryFunction f, double p, In x,
                          Tensor& y) {
    return WithFormula(f, p, [&](auto function) {
      const ForwardBody<T, decltype(function)> body{function, Data<T>(x),
                                                    Data<T>(y)};
      return ForEachElement<kVectorOf<T>>(
          "UnaryForward", cuda.stream, x.numel(),
          IsAligned(body.x) && IsAligned(body.y), body);
    });
  }
};

struct UnaryBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, UnaryFunction f, double p,
                          In saved, In dy, Tensor& dx) {
    return WithFormula(f, p, [&](auto function) {
      const BackwardBody<T, decltype(function)> body{function, Data<T>(saved),
                                                     Data<T>(dy), Data<T>(dx)};
      const bool aligned =
          IsAligned(body.saved) && IsAligned(body.dy) && IsAligned(body.dx);
      return ForEachElement<kVectorOf<T>>("UnaryBackward", cuda.stream,
                                          dy.numel(), aligned, body);
    });
  }
};

}  // namespace

template <>
void BindFamily(UnaryKernels& ops, CudaOps* state) {
  BindFloating<UnaryForward>(ops.UnaryForward, state);
  BindFloating<UnaryBackward>(ops.UnaryBackward, state);
}

}  // namespace troupe::nn::cuda
