#include "nn/kernels/cuda/device/reduce_tree.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/cuda/launch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"

namespace troupe::nn::cuda {
namespace {

constexpr int kRanksMax = kReduceTreeRanksMax;
// Limit on the partial sums (of 1, 2, 4, ... ranks) that wait for their right
// operand at the same time.
constexpr int kWaitingMax = 7;
static_assert(1 << (kWaitingMax - 1) >= kRanksMax, "each rank finds its place");

// The kernel's parameter, passed by value.
struct Ranges {
  const void* sources[kRanksMax];
  void* destinations[kRanksMax];
  int source_count;
  int destination_count;
};

// Rounds `value` to T and back, as every node of the tree does.
template <typename T, typename C>
__device__ __forceinline__ C AtPrecision(C value) {
  T element;
  Round(value, element);
  return Widen(element);
}

// Minimum and maximum return `left` of two equal values, and a NaN if either
// value is NaN.
template <ReduceOp kOp, typename T, typename C>
__device__ __forceinline__ C Combine(C left, C right) {
  if constexpr (kOp == ReduceOp::kMin) {
    const C least = right < left ? right : left;
    return right == right ? least : right;
  } else if constexpr (kOp == ReduceOp::kMax) {
    const C most = right > left ? right : left;
    return right == right ? most : right;
  } else {
    return AtPrecision<T>(left + right);
  }
}

// Every NaN of a sum is written with these bits, because a GPU's conversions to
// 16 bits give other ones than the CPU's.
template <typename T, typename Bits>
__device__ __forceinline__ void SetBits(Bits bits, T& element) {
  static_assert(sizeof(T) == sizeof(Bits), "all bits");
  memcpy(static_cast<void*>(&element), &bits, sizeof(T));
}
__device__ __forceinline__ void SetNan(float& element) {
  SetBits(0x7fc00000u, element);
}
__device__ __forceinline__ void SetNan(double& element) {
  SetBits(0x7ff8000000000000ull, element);
}
__device__ __forceinline__ void SetNan(__nv_bfloat16& element) {
  SetBits(static_cast<unsigned short>(0x7fc0), element);
}
__device__ __forceinline__ void SetNan(__half& element) {
  SetBits(static_cast<unsigned short>(0x7e00), element);
}

// Computes the root of the tree. A division by a power of two is replaced by a
// multiplication, which is exact.
template <ReduceOp kOp, typename T, typename C>
__device__ __forceinline__ T Root(C value, int ranks) {
  if constexpr (kOp == ReduceOp::kAvg) {
    const C divisor = static_cast<C>(ranks);
    const bool exact = (ranks & (ranks - 1)) == 0;
    value = AtPrecision<T>(exact ? value * (static_cast<C>(1) / divisor)
                                 : value / divisor);
  }
  T element;
  if (value == value) {
    Round(value, element);
  } else {
    SetNan(element);
  }
  return element;
}

// Reduces element or vector i over the ranks. The tree over n ranks splits at
// the largest power of two below n, so the waiting sums, from the left, cover
// 2^b ranks each, for the set bits b of the number of ranks read so far.
template <typename T, ReduceOp kOp, int kCount>
__device__ __forceinline__ Pack<T, kCount> TreeAt(const Ranges& ranges,
                                                  std::int64_t i) {
  using Vector = decltype(Load<kCount>(static_cast<const T*>(nullptr)));
  Vector waiting[kWaitingMax];
  int depth = 0;
  const auto combine = [](const Vector& left, Vector& right) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      right.at[k] = Combine<kOp, T>(left.at[k], right.at[k]);
    }
  };
  for (int rank = 0; rank < ranges.source_count; ++rank) {
    Vector sum = Load<kCount>(static_cast<const T*>(ranges.sources[rank]) + i);
    for (int come = rank + 1; come % 2 == 0; come /= 2) {
      combine(waiting[--depth], sum);
    }
    waiting[depth++] = sum;
  }
  Vector all = waiting[--depth];
  while (depth > 0) combine(waiting[--depth], all);
  Pack<T, kCount> pack;
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    pack.at[k] = Root<kOp, T>(all.at[k], ranges.source_count);
  }
  return pack;
}

template <typename T, ReduceOp kOp>
struct Reduction {
  Ranges ranges;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    const Pack<T, kCount> all = TreeAt<T, kOp, kCount>(ranges, i);
    for (int d = 0; d < ranges.destination_count; ++d) {
      StorePack(all, static_cast<T*>(ranges.destinations[d]) + i);
    }
  }
};

template <typename T, ReduceOp kOp>
absl::Status Run(const Ranges& ranges, std::int64_t count,
                 cudaStream_t stream) {
  const bool aligned =
      std::all_of(ranges.sources, ranges.sources + ranges.source_count,
                  IsAligned) &&
      std::all_of(ranges.destinations,
                  ranges.destinations + ranges.destination_count, IsAligned);
  return ForEachElement<kVectorOf<T>>("ReduceTree", stream, count, aligned,
                                      Reduction<T, kOp>{ranges});
}

template <typename T>
absl::Status RunOp(ReduceOp op, const Ranges& ranges, std::int64_t count,
                   cudaStream_t stream) {
  switch (op) {
    case ReduceOp::kSum:
      return Run<T, ReduceOp::kSum>(ranges, count, stream);
    case ReduceOp::kAvg:
      return Run<T, ReduceOp::kAvg>(ranges, count, stream);
    case ReduceOp::kMin:
      return Run<T, ReduceOp::kMin>(ranges, count, stream);
    case ReduceOp::kMax:
      return Run<T, ReduceOp::kMax>(ranges, count, stream);
  }
  return absl::InternalError("no op of nn/collectives.h");
}

}  // namespace

absl::Status CheckReduceTree(const TreeReduction& reduction) {
  const auto ranks = static_cast<int>(
      std::max(reduction.sources.size(), reduction.destinations.size()));
  if (reduction.sources.empty()) {
    return absl::InvalidArgumentError("a reduction over no rank");
  }
  if (ranks > kRanksMax) {
    return absl::UnimplementedError(
        absl::StrCat("a reduction over ", ranks,
                     " ranks of one process; GPUs reduce over ", kRanksMax));
  }
  const Tensor& first = reduction.sources[0];
  if (!IsFloating(first.dtype())) {
    return absl::UnimplementedError(
        absl::StrCat("GPUs do not reduce ", DTypeName(first.dtype())));
  }
  for (const auto* side : {&reduction.sources, &reduction.destinations}) {
    for (const Tensor& range : *side) {
      if (range.dtype() == first.dtype() && range.numel() == first.numel()) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "a reduction of ", first.ToString(), " and ", range.ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status ReduceTree(const TreeReduction& reduction, cudaStream_t stream) {
  Ranges ranges = {};
  for (const Tensor& source : reduction.sources) {
    ranges.sources[ranges.source_count++] = source.device_data();
  }
  for (const Tensor& destination : reduction.destinations) {
    ranges.destinations[ranges.destination_count++] = destination.device_data();
  }
  const std::int64_t count = reduction.sources[0].numel();
  switch (reduction.sources[0].dtype()) {
    case DType::kF32:
      return RunOp<float>(reduction.op, ranges, count, stream);
    case DType::kF64:
      return RunOp<double>(reduction.op, ranges, count, stream);
    case DType::kBF16:
      return RunOp<__nv_bfloat16>(reduction.op, ranges, count, stream);
    default:
      return RunOp<__half>(reduction.op, ranges, count, stream);
  }
}

}  // namespace troupe::nn::cuda
