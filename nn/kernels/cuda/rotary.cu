#include "nn/kernels/rotary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"

// Letters are those of nn/kernels/rotary.h; P positions.

namespace troupe::nn::cuda {
namespace {

template <typename T>
struct Rotation {
  std::int64_t P, D;
  int H, heads, pairs;
  double base, first;
  float sign;  // sign of the sines: -1 for the inverse
  bool interleaved;
  const T* x;
  T* y;
};

// Computes cosine and sine of an angle in f64: f32 cannot represent every
// position from 2^24 on, and the sine would be wrong long before.
template <typename T>
__device__ __forceinline__ void Angle(const Rotation<T>& r, std::int64_t p,
                                      int pair, float* cosine, float* sine) {
  const double angle = (r.first + static_cast<double>(p)) *
                       pow(r.base, -static_cast<double>(pair) / r.pairs);
  *cosine = static_cast<float>(cos(angle));
  *sine = r.sign * static_cast<float>(sin(angle));
}

// Rotate kVector pairs of one position in all heads of a sample.
template <int kVector, typename T>
__device__ __forceinline__ void TurnHalves(const Rotation<T>& r,
                                           std::int64_t row, int pair,
                                           const float* cosine,
                                           const float* sine) {
  for (int h = 0; h < r.heads; ++h) {
    const std::int64_t at = (row * r.H + h) * r.D + pair;
    auto a = Load<kVector>(r.x + at), b = Load<kVector>(r.x + at + r.pairs);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      const float from_a = a.at[k], from_b = b.at[k];
      a.at[k] = from_a * cosine[k] - from_b * sine[k];
      b.at[k] = from_b * cosine[k] + from_a * sine[k];
    }
    Store(a, r.y + at);
    Store(b, r.y + at + r.pairs);
  }
}

template <int kVector, typename T>
__device__ __forceinline__ void TurnPairs(const Rotation<T>& r,
                                          std::int64_t row, int pair,
                                          const float* cosine,
                                          const float* sine) {
  for (int h = 0; h < r.heads; ++h) {
    const std::int64_t at = (row * r.H + h) * r.D + 2 * pair;
    // A single pair may begin at an odd element, so its two elements are
    // accessed one by one.
    constexpr int kAtOnce = kVector == 1 ? 1 : 2 * kVector;
    Numbers<float, kAtOnce> v[2 * kVector / kAtOnce];
#pragma unroll
    for (int part = 0; part < 2 * kVector / kAtOnce; ++part) {
      v[part] = Load<kAtOnce>(r.x + at + part * kAtOnce);
    }
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      float& a = v[2 * k / kAtOnce].at[2 * k % kAtOnce];
      float& b = v[(2 * k + 1) / kAtOnce].at[(2 * k + 1) % kAtOnce];
      const float from_a = a, from_b = b;
      a = from_a * cosine[k] - from_b * sine[k];
      b = from_b * cosine[k] + from_a * sine[k];
    }
#pragma unroll
    for (int part = 0; part < 2 * kVector / kAtOnce; ++part) {
      Store(v[part], r.y + at + part * kAtOnce);
    }
  }
}

template <int kVector, typename T>
__global__ void __launch_bounds__(kElementThreads)
    RotaryKernel(std::int64_t samples, Rotation<T> r) {
  const int vectors = r.pairs / kVector;
  for (std::int64_t i = ThreadOfGrid(); i < r.P * vectors;
       i += ThreadsOfGrid()) {
    const std::int64_t p = i / vectors;
    const int pair = static_cast<int>(i % vectors) * kVector;
    float cosine[kVector], sine[kVector];
    for (int k = 0; k < kVector; ++k) {
      Angle(r, p, pair + k, cosine + k, sine + k);
    }
    for (std::int64_t n = blockIdx.y; n < samples; n += gridDim.y) {
      if (r.interleaved) {
        TurnPairs<kVector>(r, n * r.P + p, pair, cosine, sine);
      } else {
        TurnHalves<kVector>(r, n * r.P + p, pair, cosine, sine);
      }
    }
  }
}

// Copies the elements that are not rotated.
template <typename T>
struct CopyRest {
  Rotation<T> r;
  template <int kCount>
  __device__ void At(std::int64_t i) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const std::int64_t d = (i + k) % r.D, h = (i + k) / r.D % r.H;
      if (h >= r.heads || d >= 2 * r.pairs) r.y[i + k] = r.x[i + k];
    }
  }
};

struct Rotary {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const RotaryRule& rule, In x,
                          Tensor& y) {
    if (x.numel() == 0) return absl::OkStatus();
    const std::int64_t N = x.dim(0);
    Rotation<T> r;
    r.P = x.dim(1);
    r.H = static_cast<int>(x.dim(2));
    r.D = x.dim(3);
    r.heads = static_cast<int>(rule.heads);
    r.pairs = static_cast<int>(rule.width / 2);
    r.base = rule.base;
    r.first = static_cast<double>(rule.first);
    r.sign = rule.inverse ? -1.0f : 1.0f;
    r.interleaved = rule.interleaved;
    r.x = Data<T>(x);
    r.y = Data<T>(y);
    const bool whole = rule.heads == r.H && rule.width == r.D;
    if (!whole && r.x != r.y) {
      TROUPE_RETURN_IF_ERROR(ForEachElement<1>(
          "Rotary.Rest", cuda.stream, x.numel(), true, CopyRest<T>{r}));
    }
    if (rule.heads * rule.width == 0) return absl::OkStatus();
    constexpr int kVector = kVectorOf<T>;
    const bool vectors = IsAligned(r.x) && IsAligned(r.y) &&
                         r.pairs % kVector == 0 && r.D % kVector == 0;
    base::LaunchShape shape = GridOf(r.P * r.pairs / (vectors ? kVector : 1));
    shape.grid.y = static_cast<unsigned>(std::min<std::int64_t>(N, kGridYMax));
    if (vectors) {
      return base::Launch("Rotary", RotaryKernel<kVector, T>, shape,
                          cuda.stream, N, r);
    }
    return base::Launch("Rotary", RotaryKernel<1, T>, shape, cuda.stream, N, r);
  }
};

}  // namespace

template <>
void BindFamily(RotaryKernels& ops, CudaOps* state) {
  BindFloating<Rotary>(ops.Rotary, state);
}

}  // namespace troupe::nn::cuda
