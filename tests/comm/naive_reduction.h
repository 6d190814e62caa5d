// Reference implementation of the reduction tree. Tests compare the kernels and
// every backend with it.
//
//   std::vector<std::vector<float>> ranges = {a, b, c};  // by rank
//   std::vector<float> sums =
//       NaiveReduction<float>(ReduceOp::kSum, ranges);

#ifndef TESTS_COMM_NAIVE_REDUCTION_H_
#define TESTS_COMM_NAIVE_REDUCTION_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "comm/reduction/reduce_op.h"
#include "nn/tensor/dtype.h"

namespace troupe::comm {

// Converts an element to the type that a node of the tree computes in (Widen),
// and rounds a result back to the element's type (Narrow).
inline float Widen(nn::bf16 x) { return x.ToFloat(); }
inline float Widen(nn::f16 x) { return x.ToFloat(); }
template <typename T>
T Widen(T x) {
  return x;
}
template <typename T>
T Narrow(float x) {
  if constexpr (std::is_class_v<T>) {
    return T::FromFloat(x);
  } else {
    return static_cast<T>(x);
  }
}
template <typename T, typename C>
T Narrow(C x) {
  return static_cast<T>(x);
}

template <typename T>
T NaiveNode(ReduceOp op, T left, T right) {
  auto a = Widen(left);
  auto b = Widen(right);
  using C = decltype(a);
  if (op == ReduceOp::kMin || op == ReduceOp::kMax) {
    if (a != a) return left;
    if (b != b) return right;
    return (op == ReduceOp::kMin ? b < a : b > a) ? right : left;
  }
  const bool product = op == ReduceOp::kProduct;
  if constexpr (std::is_integral_v<C>) {  // wraps around
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    if (op == ReduceOp::kBand) return static_cast<T>(x & y);
    if (op == ReduceOp::kBor) return static_cast<T>(x | y);
    if (op == ReduceOp::kBxor) return static_cast<T>(x ^ y);
    return static_cast<T>(product ? x * y : x + y);
  } else {
    return Narrow<T>(static_cast<C>(product ? a * b : a + b));
  }
}

// The tree over `ranges`, which are equally long and in the order of ranks. A
// node computes all elements: calls for each were most of the time of tests
// under ThreadSanitizer.
template <typename T>
std::vector<T> NaiveTree(ReduceOp op, absl::Span<const std::vector<T>> ranges) {
  if (ranges.size() == 1) return ranges[0];
  std::size_t left = 1;
  while (2 * left < ranges.size()) left *= 2;
  std::vector<T> result = NaiveTree(op, ranges.subspan(0, left));
  const std::vector<T> right = NaiveTree(op, ranges.subspan(left));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = NaiveNode(op, result[i], right[i]);
  }
  return result;
}

// The value of an element after the root: divided by the number of ranks for
// kAvg, and any NaN replaced by the canonical quiet NaN.
template <typename T>
T NaiveRoot(ReduceOp op, T sum, std::size_t ranks) {
  const auto x = Widen(sum);
  using C = std::remove_const_t<decltype(x)>;
  const C divisor = op == ReduceOp::kAvg ? static_cast<C>(ranks) : C{1};
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(x)) return Narrow<T>(std::numeric_limits<C>::quiet_NaN());
  }
  return Narrow<T>(static_cast<C>(x / divisor));
}

// Reduces the ranges of all ranks.
template <typename T>
std::vector<T> NaiveReduction(ReduceOp op,
                              absl::Span<const std::vector<T>> ranges) {
  std::vector<T> result = NaiveTree(op, ranges);
  for (T& x : result) x = NaiveRoot(op, x, ranges.size());
  return result;
}

}  // namespace troupe::comm

#endif  // TESTS_COMM_NAIVE_REDUCTION_H_
