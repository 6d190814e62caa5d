#include "nn/kernels/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"
#include "nn/kernels/cuda/softmax_row.h"

namespace troupe::nn::cuda {
namespace {

constexpr int kSoftmaxThreads = 256;
// A row with more classes than this is computed by a block, others by a warp.
constexpr std::int64_t kWarpClassesMax = 1024;
constexpr std::int64_t kSoftmaxBlocksMax = 4096;

struct Rows {
  std::int64_t count;
  int C;
  bool log;
};

template <int kVector, int kRowThreads, typename T>
__device__ __forceinline__ void ForwardRow(const Rows& rows, int thread,
                                           const T* x, T* y) {
  const SoftmaxOfRow all = SoftmaxSums<kVector, kRowThreads>(rows.C, thread, x);
  const float inverse = static_cast<float>(1 / all.sum);
  const float log_sum = static_cast<float>(log(all.sum));
  for (int c = thread * kVector; c < rows.C; c += kRowThreads * kVector) {
    Numbers<float, kVector> v = Load<kVector>(x + c);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      const float above = v.at[k] - all.largest;
      v.at[k] = rows.log ? above - log_sum : expf(above) * inverse;
    }
    Store(v, y + c);
  }
}

// Returns the sum of dy y over the row; for log-softmax, the sum of dy.
template <int kVector, int kRowThreads, typename T>
__device__ __forceinline__ double SumOfRow(const Rows& rows, int thread,
                                           const T* y, const T* dy) {
  double sum = 0;
  for (int c = thread * kVector; c < rows.C; c += kRowThreads * kVector) {
    const Numbers<float, kVector> v = Load<kVector>(dy + c);
    const Numbers<float, kVector> value = Load<kVector>(y + c);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      sum += static_cast<double>(rows.log ? v.at[k] : v.at[k] * value.at[k]);
    }
  }
  if constexpr (kRowThreads == kWarpThreads) {
    return MergeWarp(sum, AddValues());
  } else {
    return MergeBlock<kRowThreads>(sum, AddValues());
  }
}

template <int kVector, int kRowThreads, typename T>
__device__ __forceinline__ void BackwardRow(const Rows& rows, int thread,
                                            const T* y, const T* dy, T* dx) {
  const float sum =
      static_cast<float>(SumOfRow<kVector, kRowThreads>(rows, thread, y, dy));
  for (int c = thread * kVector; c < rows.C; c += kRowThreads * kVector) {
    Numbers<float, kVector> v = Load<kVector>(dy + c);
    const Numbers<float, kVector> value = Load<kVector>(y + c);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      v.at[k] = rows.log ? v.at[k] - expf(value.at[k]) * sum
                         : value.at[k] * (v.at[k] - sum);
    }
    Store(v, dx + c);
  }
}

// Calls row(thread, first element) for each row of this warp or block. All
// kRowThreads threads of a row make the same calls.
template <int kRowThreads, typename Row>
__device__ __forceinline__ void ForEachRow(const Rows& rows, Row row) {
  constexpr int kRowsOfBlock = kSoftmaxThreads / kRowThreads;
  const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
  std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock +
                   threadIdx.x / kRowThreads;
  for (; n < rows.count;
       n += static_cast<std::int64_t>(gridDim.x) * kRowsOfBlock) {
    row(thread, n * rows.C);
  }
}

template <int kVector, int kRowThreads, typename T>
__global__ void __launch_bounds__(kSoftmaxThreads)
    ForwardKernel(Rows rows, const T* x, T* y) {
  ForEachRow<kRowThreads>(rows, [&](int thread, std::int64_t at) {
    ForwardRow<kVector, kRowThreads>(rows, thread, x + at, y + at);
  });
}

template <int kVector, int kRowThreads, typename T>
__global__ void __launch_bounds__(kSoftmaxThreads)
    BackwardKernel(Rows rows, const T* y, const T* dy, T* dx) {
  ForEachRow<kRowThreads>(rows, [&](int thread, std::int64_t at) {
    BackwardRow<kVector, kRowThreads>(rows, thread, y + at, dy + at, dx + at);
  });
}

Rows RowsOf(SoftmaxForm form, const Tensor& t) {
  const std::int64_t C = t.dim(-1);
  return {t.numel() / C, static_cast<int>(C), form == SoftmaxForm::kLog};
}

base::LaunchShape LaunchOf(const Rows& rows) {
  const std::int64_t of_block =
      rows.C > kWarpClassesMax ? 1 : kSoftmaxThreads / kWarpThreads;
  const std::int64_t blocks = (rows.count + of_block - 1) / of_block;
  base::LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(std::min(blocks, kSoftmaxBlocksMax)));
  shape.block = dim3(kSoftmaxThreads);
  return shape;
}

struct SoftmaxForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, SoftmaxForm form, In x,
                          Tensor& y) {
    if (x.numel() == 0) return absl::OkStatus();
    constexpr int kVector = kVectorOf<T>;
    const Rows rows = RowsOf(form, x);
    const T* from = Data<T>(x);
    T* to = Data<T>(y);
    const bool vectors =
        IsAligned(from) && IsAligned(to) && rows.C % kVector == 0;
    const auto kernel =
        rows.C > kWarpClassesMax
            ? (vectors ? ForwardKernel<kVector, kSoftmaxThreads, T>
                       : ForwardKernel<1, kSoftmaxThreads, T>)
            : (vectors ? ForwardKernel<kVector, kWarpThreads, T>
                       : ForwardKernel<1, kWarpThreads, T>);
    return base::Launch("SoftmaxForward", kernel, LaunchOf(rows), cuda.stream,
                        rows, from, to);
  }
};

struct SoftmaxBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, SoftmaxForm form, In y, In dy,
                          Tensor& dx) {
    if (y.numel() == 0) return absl::OkStatus();
    constexpr int kVector = kVectorOf<T>;
    const Rows rows = RowsOf(form, y);
    const T* value = Data<T>(y);
    const T* from = Data<T>(dy);
    T* to = Data<T>(dx);
    const bool vectors = IsAligned(value) && IsAligned(from) && IsAligned(to) &&
                         rows.C % kVector == 0;
    const auto kernel =
        rows.C > kWarpClassesMax
            ? (vectors ? BackwardKernel<kVector, kSoftmaxThreads, T>
                       : BackwardKernel<1, kSoftmaxThreads, T>)
            : (vectors ? BackwardKernel<kVector, kWarpThreads, T>
                       : BackwardKernel<1, kWarpThreads, T>);
    return base::Launch("SoftmaxBackward", kernel, LaunchOf(rows), cuda.stream,
                        rows, value, from, to);
  }
};

}  // namespace

template <>
void BindFamily(SoftmaxKernels& ops, CudaOps* state) {
  BindFloating<SoftmaxForward>(ops.SoftmaxForward, state);
  BindFloating<SoftmaxBackward>(ops.SoftmaxBackward, state);
}

}  // namespace troupe::nn::cuda
