#include "base/cuda/emulated/nccl/reduction.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace emulated_cuda {
namespace {

// Storage and computation type of an element; `Wide` represents one operation
// exactly enough to be rounded once.
template <typename T>
struct Element {
  using Wide = T;
  static Wide Widen(T value) { return value; }
  static T Narrow(Wide value) { return value; }
};
template <>
struct Element<__half> {
  using Wide = float;
  static Wide Widen(__half value) { return __half2float(value); }
  static __half Narrow(Wide value) { return __float2half_rn(value); }
};
template <>
struct Element<__nv_bfloat16> {
  using Wide = float;
  static Wide Widen(__nv_bfloat16 value) { return __bfloat162float(value); }
  static __nv_bfloat16 Narrow(Wide value) { return __float2bfloat16_rn(value); }
};

template <typename T>
T Load(const char* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

// Integers wrap around.
template <typename Wide>
Wide Add(Wide a, Wide b) {
  if constexpr (std::is_integral_v<Wide>) {
    using Unsigned = std::make_unsigned_t<Wide>;
    return static_cast<Wide>(static_cast<Unsigned>(a) +
                             static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <typename Wide>
Wide Multiply(Wide a, Wide b) {
  if constexpr (std::is_integral_v<Wide>) {
    return static_cast<Wide>(static_cast<std::uint64_t>(a) *
                             static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

template <typename Wide>
Wide Combine(ncclRedOp_t op, Wide a, Wide b) {
  switch (op) {
    case ncclProd:
      return Multiply(a, b);
    case ncclMax:
      if constexpr (std::is_floating_point_v<Wide>) return std::fmax(a, b);
      return std::max(a, b);
    case ncclMin:
      if constexpr (std::is_floating_point_v<Wide>) return std::fmin(a, b);
      return std::min(a, b);
    default:
      return Add(a, b);
  }
}

template <typename T>
void ApplyTo(const Reduction& reduction, const std::vector<const char*>& terms,
             std::size_t count, char* result) {
  using E = Element<T>;
  using Wide = typename E::Wide;
  const auto ranks = static_cast<Wide>(terms.size());
  const bool divides_terms =
      reduction.op == ncclAvg && std::is_floating_point_v<Wide>;
  const bool divides_sum = reduction.op == ncclAvg && !divides_terms;
  const Wide part =
      divides_terms ? E::Widen(E::Narrow(Wide{1} / ranks)) : Wide{1};
  for (std::size_t i = 0; i < count; ++i) {
    Wide sum{};
    for (std::size_t r = 0; r < terms.size(); ++r) {
      Wide term = E::Widen(Load<T>(terms[r], i));
      if (divides_terms) term = E::Widen(E::Narrow(Multiply(term, part)));
      if (!reduction.factors.empty()) {
        const Wide factor = E::Widen(Load<T>(reduction.factors[r].data(), 0));
        term = E::Widen(E::Narrow(Multiply(term, factor)));
      }
      sum =
          r == 0 ? term : E::Widen(E::Narrow(Combine(reduction.op, sum, term)));
    }
    if (divides_sum) sum = static_cast<Wide>(sum / ranks);
    const T rounded = E::Narrow(sum);
    std::memcpy(result + i * sizeof(T), &rounded, sizeof(T));
  }
}

}  // namespace

std::size_t BytesOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

void Reduction::Apply(const std::vector<const char*>& terms, std::size_t count,
                      char* result) const {
  switch (type) {
    case ncclInt8:
      return ApplyTo<std::int8_t>(*this, terms, count, result);
    case ncclUint8:
      return ApplyTo<std::uint8_t>(*this, terms, count, result);
    case ncclInt32:
      return ApplyTo<std::int32_t>(*this, terms, count, result);
    case ncclUint32:
      return ApplyTo<std::uint32_t>(*this, terms, count, result);
    case ncclInt64:
      return ApplyTo<std::int64_t>(*this, terms, count, result);
    case ncclUint64:
      return ApplyTo<std::uint64_t>(*this, terms, count, result);
    case ncclFloat16:
      return ApplyTo<__half>(*this, terms, count, result);
    case ncclBfloat16:
      return ApplyTo<__nv_bfloat16>(*this, terms, count, result);
    case ncclFloat32:
      return ApplyTo<float>(*this, terms, count, result);
    case ncclFloat64:
      return ApplyTo<double>(*this, terms, count, result);
    default:
      return;
  }
}

}  // namespace emulated_cuda
