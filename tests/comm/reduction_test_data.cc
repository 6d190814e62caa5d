#include "tests/comm/reduction_test_data.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "tests/comm/naive_reduction.h"

namespace troupe::comm {
namespace {

using nn::DType;
using nn::Tensor;

// Calls `function` with a value of the C++ type that `dtype` names.
template <typename Function>
void WithType(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kF32:
      return function(float());
    case DType::kF64:
      return function(double());
    case DType::kBF16:
      return function(nn::bf16());
    case DType::kF16:
      return function(nn::f16());
    case DType::kI32:
      return function(std::int32_t());
    case DType::kI64:
      return function(std::int64_t());
    case DType::kU8:
      return function(std::uint8_t());
  }
}

template <typename T>
T TestValue(std::uint64_t bits) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else {
    constexpr float kSpecial[] = {std::numeric_limits<float>::quiet_NaN(),
                                  std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity(),
                                  0.0f,
                                  -0.0f,
                                  65504.0f,
                                  1e-7f};
    const std::uint64_t special = bits % 256;
    if (special < 7) return Narrow<T>(kSpecial[special]);
    // In (-4, 4), with all bits of a float's mantissa.
    const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
    return Narrow<T>(static_cast<float>(unit * 8 - 4));
  }
}

}  // namespace

std::uint64_t NextBits(std::uint64_t* state) {
  std::uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Tensor TestRange(DType dtype, std::int64_t count, std::uint64_t seed, int rank,
                 nn::Allocator& allocator) {
  const Tensor whole = Tensor::Empty({count + 1}, dtype, allocator);
  WithType(dtype, [&](auto type) {
    using T = decltype(type);
    std::uint64_t state = seed * 1000 + rank;
    for (T& x : whole.span<T>()) x = TestValue<T>(NextBits(&state));
  });
  return whole.Slice(1, count + 1);
}

Tensor ExpectedResult(ReduceOp op, const std::vector<Tensor>& ranges,
                      nn::Allocator& allocator) {
  const Tensor result =
      Tensor::Empty(ranges[0].shape(), ranges[0].dtype(), allocator);
  WithType(result.dtype(), [&](auto type) {
    using T = decltype(type);
    std::vector<std::vector<T>> values;
    for (const Tensor& range : ranges) {
      const auto from = range.span<T>();
      values.emplace_back(from.begin(), from.end());
    }
    const auto reduced = NaiveReduction<T>(op, values);
    std::copy(reduced.begin(), reduced.end(), result.data<T>());
  });
  return result;
}

}  // namespace troupe::comm
