#include "nn/kernels/unary.h"

#include <cmath>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"

namespace troupe::nn::cuda {
namespace {

// The functions with their derivatives: At(x) returns f(x), Slope(saved, dy)
// returns f'(x) dy. `saved` is x or f(x), as UnaryKernels defines.

struct NegateFn {
  __device__ float At(float x) const { return -x; }
  __device__ float Slope(float, float dy) const { return -dy; }
};

struct ExpFn {
  __device__ float At(float x) const { return expf(x); }
  __device__ float Slope(float y, float dy) const { return dy * y; }
};

struct LogFn {
  __device__ float At(float x) const { return logf(x); }
  __device__ float Slope(float x, float dy) const { return dy / x; }
};

struct SqrtFn {
  __device__ float At(float x) const { return sqrtf(x); }
  __device__ float Slope(float y, float dy) const { return dy / (2 * y); }
};

struct ScaleFn {
  float p;
  __device__ float At(float x) const { return p * x; }
  __device__ float Slope(float, float dy) const { return p * dy; }
};

struct AddScalarFn {
  float p;
  __device__ float At(float x) const { return x + p; }
  __device__ float Slope(float, float dy) const { return dy; }
};

struct LeakyReluFn {
  float p;
  __device__ float At(float x) const { return x > 0 ? x : p * x; }
  __device__ float Slope(float x, float dy) const {
    return x > 0 ? dy : p * dy;
  }
};

struct GeluFn {
  // Returns P(X <= x) of the normal distribution.
  __device__ float Distribution(float x) const {
    return 0.5f * erfcf(x * -0.70710678f);
  }
  __device__ float At(float x) const { return x * Distribution(x); }
  __device__ float Slope(float x, float dy) const {
    const float density = 0.39894228f * expf(-0.5f * x * x);
    return dy * (Distribution(x) + x * density);
  }
};

__device__ __forceinline__ float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

// Computes x sigmoid(v), v = 2 sqrt(2/pi) (x + 0.044715 x^3). sigmoid(v) equals
// (1 + tanh(v / 2)) / 2, but without cancellation.
struct GeluTanhFn {
  static constexpr float kLinear = 1.5957691216f;
  static constexpr float kCubic = 0.044715f * 1.5957691216f;
  __device__ float Gate(float x) const {
    return Sigmoid(x * (kLinear + kCubic * x * x));
  }
  __device__ float At(float x) const { return x * Gate(x); }
  __device__ float Slope(float x, float dy) const {
    const float gate = Gate(x);
    const float dv = kLinear + 3 * kCubic * x * x;
    return dy * (gate + gate * (x * dv * (1 - gate)));
  }
};

struct SiluFn {
  __device__ float At(float x) const { return x * Sigmoid(x); }
  __device__ float Slope(float x, float dy) const {
    const float gate = Sigmoid(x);
    return dy * (gate + gate * (x * (1 - gate)));
  }
};

struct SigmoidFn {
  __device__ float At(float x) const { return Sigmoid(x); }
  __device__ float Slope(float y, float dy) const { return dy * (y * (1 - y)); }
};

struct TanhFn {
  __device__ float At(float x) const { return tanhf(x); }
  __device__ float Slope(float y, float dy) const {
    return dy * ((1 - y) * (1 + y));
  }
};

// Returns run(function) for the function `f` with parameter `p`.
template <typename Run>
absl::Status WithUnary(UnaryFunction f, float p, Run run) {
  switch (f) {
    case UnaryFunction::kNegate:
      return run(NegateFn{});
    case UnaryFunction::kExp:
      return run(ExpFn{});
    case UnaryFunction::kLog:
      return run(LogFn{});
    case UnaryFunction::kSqrt:
      return run(SqrtFn{});
    case UnaryFunction::kScale:
      return run(ScaleFn{p});
    case UnaryFunction::kAddScalar:
      return run(AddScalarFn{p});
    case UnaryFunction::kLeakyRelu:
      return run(LeakyReluFn{p});
    case UnaryFunction::kGelu:
      return run(GeluFn{});
    case UnaryFunction::kGeluTanh:
      return run(GeluTanhFn{});
    case UnaryFunction::kSilu:
      return run(SiluFn{});
    case UnaryFunction::kSigmoid:
      return run(SigmoidFn{});
    case UnaryFunction::kTanh:
      return run(TanhFn{});
  }
  return absl::InternalError("no such function");
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
    return WithUnary(f, static_cast<float>(p), [&](auto function) {
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
    return WithUnary(f, static_cast<float>(p), [&](auto function) {
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
