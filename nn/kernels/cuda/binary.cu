#include "nn/kernels/binary.h"

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/strided_offsets.h"
#include "nn/kernels/element_formulas.h"

namespace troupe::nn::cuda {
namespace {

// Loads kCount elements of an operand, or repeats one element if `step` is 0.
template <int kCount, typename T>
__device__ __forceinline__ Numbers<float, kCount> LoadRun(const T* from,
                                                          std::int64_t step) {
  if (step != 0) return Load<kCount>(from);
  Numbers<float, kCount> v;
  const float value = Widen(*from);
  for (float& each : v.at) each = value;
  return v;
}

// A vector never crosses runs of the loops' last axis.
template <typename T, typename Function>
struct BinaryBody {
  Function function;
  DeviceLoops loops;
  std::int64_t a_step, b_step;  // strides of the last axis
  const T* a;
  const T* b;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    const Offsets at = OffsetsOf(loops, i);
    Numbers<float, kCount> v = LoadRun<kCount>(a + at.a, a_step);
    const Numbers<float, kCount> w = LoadRun<kCount>(b + at.b, b_step);
    for (int k = 0; k < kCount; ++k) v.at[k] = function(v.at[k], w.at[k]);
    Store(v, y + i);
  }
};

template <typename T, typename Function>
absl::Status RunBinary(const CudaOps& cuda, Function function, In a, In b,
                       Tensor& y) {
  const StridedLoops loops = BroadcastLoops(y.shape(), a.shape(), b.shape());
  const int last = loops.rank - 1;
  const BinaryBody<T, Function> body{function,
                                     ForDevice(loops),
                                     last < 0 ? 1 : loops.a[last],
                                     last < 0 ? 1 : loops.b[last],
                                     Data<T>(a),
                                     Data<T>(b),
                                     Data<T>(y)};
  // A single axis is one run; its rest is computed element by element.
  const bool runs = loops.rank == 1 || RunsHoldVectors(loops, kVectorOf<T>);
  const bool aligned =
      runs && IsAligned(body.a) && IsAligned(body.b) && IsAligned(body.y);
  return ForEachElement<kVectorOf<T>>("Binary", cuda.stream, y.numel(), aligned,
                                      body);
}

struct Binary {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, BinaryFunction f, In a, In b,
                          Tensor& y) {
    absl::Status status = absl::InternalError("no such function");
    WithBinary(f, [&](auto function) {
      // Without the cast, nvcc warns of an ignored Status.
      static_cast<void>(status = RunBinary<T>(cuda, function, a, b, y));
    });
    return status;
  }
};

}  // namespace

template <>
void BindFamily(BinaryKernels& ops, CudaOps* state) {
  BindFloating<Binary>(ops.Binary, state);
}

}  // namespace troupe::nn::cuda
