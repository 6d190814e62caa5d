#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"

namespace troupe::nn::cuda {
namespace {

template <typename T>
struct ReluForwardBody {
  const T* x;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    Numbers<float, kCount> v = Load<kCount>(x + i);
    for (float& value : v.at) value = value <= 0 ? 0 : value;  // NaN stays
    Store(v, y + i);
  }
};

template <typename T>
struct ReluBackwardBody {
  const T* y;
  const T* dy;
  T* dx;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    const Numbers<float, kCount> activation = Load<kCount>(y + i);
    Numbers<float, kCount> v = Load<kCount>(dy + i);
    for (int k = 0; k < kCount; ++k) {
      v.at[k] = activation.at[k] <= 0 ? 0 : v.at[k];  // at NaN dy
    }
    Store(v, dx + i);
  }
};

template <typename T>
struct ScaleBody {
  const T* x;
  const double* factor;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    const Compute<T> by = static_cast<Compute<T>>(*factor);
    Numbers<Compute<T>, kCount> v = Load<kCount>(x + i);
    for (Compute<T>& value : v.at) value = value * by;
    Store(v, y + i);
  }
};

template <typename T>
struct AddBody {
  const T* a;
  const T* b;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    Numbers<Compute<T>, kCount> v = Load<kCount>(a + i);
    const Numbers<Compute<T>, kCount> w = Load<kCount>(b + i);
    for (int k = 0; k < kCount; ++k) v.at[k] = v.at[k] + w.at[k];
    Store(v, y + i);
  }
};

struct ReluForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, Tensor& y) {
    const ReluForwardBody<T> body{Data<T>(x), Data<T>(y)};
    return ForEachElement<kVectorOf<T>>("ReluForward", cuda.stream, x.numel(),
                                        IsAligned(body.x) && IsAligned(body.y),
                                        body);
  }
};

struct ReluBackward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In y, In dy, Tensor& dx) {
    const ReluBackwardBody<T> body{Data<T>(y), Data<T>(dy), Data<T>(dx)};
    const bool aligned =
        IsAligned(body.y) && IsAligned(body.dy) && IsAligned(body.dx);
    return ForEachElement<kVectorOf<T>>("ReluBackward", cuda.stream, y.numel(),
                                        aligned, body);
  }
};

struct Scale {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, In factor, Tensor& y) {
    const ScaleBody<T> body{Data<T>(x), Data<double>(factor), Data<T>(y)};
    return ForEachElement<kVectorOf<T>>("Scale", cuda.stream, x.numel(),
                                        IsAligned(body.x) && IsAligned(body.y),
                                        body);
  }
};

struct Add {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In a, In b, Tensor& y) {
    const AddBody<T> body{Data<T>(a), Data<T>(b), Data<T>(y)};
    const bool aligned =
        IsAligned(body.a) && IsAligned(body.b) && IsAligned(body.y);
    return ForEachElement<kVectorOf<T>>("Add", cuda.stream, a.numel(), aligned,
                                        body);
  }
};

// --- CountNonFinite: the count of each block, then the sum over blocks ---

constexpr int kCountThreads = 256;
// Elements for each block, up to kCountBlocksMax blocks.
constexpr std::int64_t kCountedAtOnce = 1 << 14;
constexpr std::int64_t kCountBlocksMax = 1024;

// Returns the number of this block's elements that are NaN or infinite.
template <int kVector, typename T>
__device__ long long CountOfBlock(std::int64_t count, const T* x) {
  long long found = 0;
  const std::int64_t vectors = count / kVector;
  for (std::int64_t v = ThreadOfGrid(); v < vectors; v += ThreadsOfGrid()) {
    const Numbers<float, kVector> values = Load<kVector>(x + v * kVector);
    // x * 0 is NaN if x is NaN or infinite, and 0 otherwise.
    for (float value : values.at) found += value * 0.0f == 0.0f ? 0 : 1;
  }
  if constexpr (kVector > 1) {
    const std::int64_t i = vectors * kVector + ThreadOfGrid();
    if (i < count) found += Widen(x[i]) * 0.0f == 0.0f ? 0 : 1;
  }
  return MergeBlock<kCountThreads>(found, AddValues());
}

// Adds to total[0] if there is one block; otherwise writes of_block[blocks].
template <int kVector, typename T>
__global__ void __launch_bounds__(kCountThreads)
    CountKernel(std::int64_t count, const T* x, long long* of_block,
                double* total) {
  const long long found = CountOfBlock<kVector>(count, x);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) {
    *total += static_cast<double>(found);
  } else {
    of_block[blockIdx.x] = found;
  }
}

__global__ void __launch_bounds__(kCountThreads)
    AddCountsKernel(int blocks, const long long* of_block, double* total) {
  long long found = 0;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kCountThreads) {
    found += of_block[i];
  }
  found = MergeBlock<kCountThreads>(found, AddValues());
  if (threadIdx.x == 0) *total += static_cast<double>(found);
}

struct CountNonFinite {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, Tensor& count) {
    const std::int64_t n = x.numel();
    if (n == 0) return absl::OkStatus();
    const T* from = Data<T>(x);
    const std::int64_t blocks =
        std::min(kCountBlocksMax, (n + kCountedAtOnce - 1) / kCountedAtOnce);
    Tensor of_block;
    if (blocks > 1) {
      TROUPE_ASSIGN_OR_RETURN(
          of_block, Tensor::Create({blocks}, DType::kI64, *cuda.allocator));
    }
    auto* counts = static_cast<long long*>(
        of_block.defined() ? of_block.device_data() : nullptr);
    base::LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(blocks));
    shape.block = dim3(kCountThreads);
    const auto kernel =
        IsAligned(from) ? CountKernel<kVectorOf<T>, T> : CountKernel<1, T>;
    TROUPE_RETURN_IF_ERROR(base::Launch("CountNonFinite", kernel, shape,
                                        cuda.stream, n, from, counts,
                                        Data<double>(count)));
    if (blocks == 1) return absl::OkStatus();
    shape.grid = dim3(1);
    return base::Launch("CountNonFinite.Add", AddCountsKernel, shape,
                        cuda.stream, static_cast<int>(blocks), counts,
                        Data<double>(count));
  }
};

// --- Fill and Copy: any dtype ---

template <typename T>
struct FillBody {
  T value;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    Pack<T, kCount> pack;
    for (T& each : pack.at) each = value;
    StorePack(pack, y + i);
  }
};

template <typename T>
struct CopyBody {
  const T* x;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    StorePack(LoadPack<kCount>(x + i), y + i);
  }
};

template <typename From, typename To>
struct ConvertBody {
  const From* x;
  To* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    Store(Load<kCount>(x + i), y + i);
  }
};

template <typename T>
absl::Status FillWith(const CudaOps& cuda, T value, const Tensor& y) {
  const FillBody<T> body{value, static_cast<T*>(y.device_data())};
  return ForEachElement<kVectorOf<T>>("Fill", cuda.stream, y.numel(),
                                      IsAligned(body.y), body);
}

// Fills `y` with an integer `value`; refuses one that T cannot hold.
template <typename T>
absl::Status FillInteger(const CudaOps& cuda, double value, const Tensor& y) {
  const double least = static_cast<double>(std::numeric_limits<T>::min());
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const bool holds = value >= least && value < beyond;
  if (!holds || value != std::floor(value)) {
    return DoesNotCompute("Fill", y.dtype(), y.device());
  }
  return FillWith(cuda, static_cast<T>(value), y);
}

absl::Status Fill(const CudaOps& cuda, double value, Tensor& y) {
  switch (y.dtype()) {
    case DType::kF32:
      return FillWith(cuda, static_cast<float>(value), y);
    case DType::kF64:
      return FillWith(cuda, value, y);
    case DType::kBF16:
      return FillWith(cuda, bf16::FromDouble(value).bits, y);
    case DType::kF16:
      return FillWith(cuda, f16::FromDouble(value).bits, y);
    case DType::kI32:
      return FillInteger<std::int32_t>(cuda, value, y);
    case DType::kI64:
      return FillInteger<std::int64_t>(cuda, value, y);
    case DType::kU8:
      return FillInteger<std::uint8_t>(cuda, value, y);
  }
  return DoesNotCompute("Fill", y.dtype(), y.device());
}

// Numbers that are passed as a kernel's argument; the limit of arguments is
// 4 KiB.
struct FewValues {
  double at[256];
};

template <typename T>
__global__ void __launch_bounds__(kElementThreads)
    SetValuesKernel(int count, FewValues values, T* y) {
  const int i = static_cast<int>(ThreadOfGrid());
  if (i < count) y[i] = static_cast<T>(values.at[i]);
}

template <typename T>
absl::Status LaunchSetValues(const CudaOps& cuda,
                             const std::vector<double>& values, T* to) {
  constexpr std::size_t kFew = sizeof(FewValues) / sizeof(double);
  for (std::size_t begin = 0; begin < values.size(); begin += kFew) {
    const std::size_t count = std::min(kFew, values.size() - begin);
    FewValues few;
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(begin), count,
                few.at);
    TROUPE_RETURN_IF_ERROR(
        base::Launch("SetValues", SetValuesKernel<T>,
                     GridOf(static_cast<std::int64_t>(count)), cuda.stream,
                     static_cast<int>(count), few, to + begin));
  }
  return absl::OkStatus();
}

absl::Status SetValues(const CudaOps& cuda, const std::vector<double>& values,
                       Tensor& y) {
  if (y.dtype() == DType::kF32) {
    return LaunchSetValues(cuda, values, Data<float>(y));
  }
  if (y.dtype() == DType::kF64) {
    return LaunchSetValues(cuda, values, Data<double>(y));
  }
  return DoesNotCompute("SetValues", y.dtype(), y.device());
}

// Copies elements as words of their size.
template <typename Word>
absl::Status CopyBits(const CudaOps& cuda, const Tensor& x, const Tensor& y) {
  const CopyBody<Word> body{static_cast<const Word*>(x.device_data()),
                            static_cast<Word*>(y.device_data())};
  return ForEachElement<kVectorOf<Word>>("Copy", cuda.stream, x.numel(),
                                         IsAligned(body.x) && IsAligned(body.y),
                                         body);
}

absl::Status CopySameDType(const CudaOps& cuda, const Tensor& x,
                           const Tensor& y) {
  switch (SizeOf(x.dtype())) {
    case 1:
      return CopyBits<std::uint8_t>(cuda, x, y);
    case 2:
      return CopyBits<std::uint16_t>(cuda, x, y);
    case 4:
      return CopyBits<std::uint32_t>(cuda, x, y);
    default:
      return CopyBits<std::uint64_t>(cuda, x, y);
  }
}

absl::Status Copy(const CudaOps& cuda, In x, Tensor& y) {
  if (x.dtype() == y.dtype()) return CopySameDType(cuda, x, y);
  const Device device = y.device();
  return ForFloating<WithF64>("Copy", x.dtype(), device, [&](auto from) {
    return ForFloating<WithF64>("Copy", y.dtype(), device, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      // A vector has as many elements as 16 bytes hold of the narrower type.
      constexpr int kVector = std::max(kVectorOf<From>, kVectorOf<To>);
      const ConvertBody<From, To> body{Data<From>(x), Data<To>(y)};
      return ForEachElement<kVector>("Copy", cuda.stream, x.numel(),
                                     IsAligned(body.x) && IsAligned(body.y),
                                     body);
    });
  });
}

}  // namespace

template <>
void BindFamily(ElementwiseKernels& ops, CudaOps* state) {
  BindFloating<ReluForward>(ops.ReluForward, state);
  BindFloating<ReluBackward>(ops.ReluBackward, state);
  BindFloating<Scale, WithF64>(ops.Scale, state);
  BindFloating<CountNonFinite>(ops.CountNonFinite, state);
  BindFloating<Add, WithF64>(ops.Add, state);
  ops.Fill.Bind<Fill>(state);
  ops.SetValues.Bind<SetValues>(state);
  ops.Copy.Bind<Copy>(state);
}

}  // namespace troupe::nn::cuda
