#include "nn/kernels/select.h"

#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/strided_offsets.h"
#include "nn/kernels/element_formulas.h"

namespace troupe::nn::cuda {
namespace {

// Elements are words of their size. A floating number is 0 if all of its bits
// but the sign are.
template <typename Flag, typename Word>
struct SelectBody {
  DeviceLoops sides;  // a and b
  DeviceLoops flags;  // the condition
  const Flag* flag;
  const Word *a, *b;
  Word* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    const Offsets at = OffsetsOf(sides, i);
    const Flag bits = flag[OffsetsOf(flags, i).a];
    const bool take_a = static_cast<Flag>(bits << 1) != 0;
    y[i] = take_a ? a[at.a] : b[at.b];
  }
};

template <typename Flag, typename Word>
absl::Status SelectWords(const CudaOps& cuda, In condition, In a, In b,
                         const Tensor& y) {
  const Shape& shape = y.shape();
  const SelectBody<Flag, Word> body{
      ForDevice(BroadcastLoops(shape, a.shape(), b.shape())),
      ForDevice(BroadcastLoops(shape, condition.shape(), shape)),
      static_cast<const Flag*>(condition.device_data()),
      static_cast<const Word*>(a.device_data()),
      static_cast<const Word*>(b.device_data()),
      static_cast<Word*>(y.device_data())};
  return ForEachElement<1>("Select", cuda.stream, y.numel(), /*aligned=*/false,
                           body);
}

template <typename Flag>
absl::Status SelectBy(const CudaOps& cuda, In condition, In a, In b,
                      const Tensor& y) {
  switch (SizeOf(y.dtype())) {
    case 2:
      return SelectWords<Flag, std::uint16_t>(cuda, condition, a, b, y);
    case 4:
      return SelectWords<Flag, std::uint32_t>(cuda, condition, a, b, y);
    case 8:
      return SelectWords<Flag, std::uint64_t>(cuda, condition, a, b, y);
    default:
      return DoesNotCompute("Select", y.dtype(), y.device());
  }
}

absl::Status Select(const CudaOps& cuda, In condition, In a, In b, Tensor& y) {
  if (y.numel() == 0) return absl::OkStatus();
  switch (condition.dtype()) {
    case DType::kBF16:
    case DType::kF16:
      return SelectBy<std::uint16_t>(cuda, condition, a, b, y);
    case DType::kF32:
      return SelectBy<std::uint32_t>(cuda, condition, a, b, y);
    case DType::kF64:
      return SelectBy<std::uint64_t>(cuda, condition, a, b, y);
    default:
      return DoesNotCompute("Select", condition.dtype(), condition.device());
  }
}

template <typename T>
struct CompareBody {
  BinaryFunction f;
  DeviceLoops loops;
  const std::int64_t *a, *b;
  T* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    const Offsets at = OffsetsOf(loops, i);
    Round(Holds(f, a[at.a], b[at.b]) ? 1.0f : 0.0f, y[i]);
  }
};

struct CompareIntegers {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, BinaryFunction f, In a, In b,
                          Tensor& y) {
    if (y.numel() == 0) return absl::OkStatus();
    const CompareBody<T> body{
        f, ForDevice(BroadcastLoops(y.shape(), a.shape(), b.shape())),
        Data<std::int64_t>(a), Data<std::int64_t>(b), Data<T>(y)};
    return ForEachElement<1>("CompareIntegers", cuda.stream, y.numel(),
                             /*aligned=*/false, body);
  }
};

}  // namespace

template <>
void BindFamily(SelectKernels& ops, CudaOps* state) {
  ops.Select.Bind<Select>(state);
  BindFloating<CompareIntegers>(ops.CompareIntegers, state);
}

}  // namespace troupe::nn::cuda
