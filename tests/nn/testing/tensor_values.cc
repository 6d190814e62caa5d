#include "tests/nn/testing/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "nn/kernels/reference/element.h"
#include "nn/random/philox.h"

namespace troupe::nn {
namespace {

double Load(std::int32_t value) { return value; }
double Load(std::int64_t value) { return static_cast<double>(value); }
double Load(std::uint8_t value) { return value; }

// Calls fn(T{}) for the element type T of `dtype`, integers included.
template <typename Fn>
void ForElement(DType dtype, Fn fn) {
  switch (dtype) {
    case DType::kI32:
      return fn(std::int32_t{});
    case DType::kI64:
      return fn(std::int64_t{});
    case DType::kU8:
      return fn(std::uint8_t{});
    default: {
      const absl::Status status =
          reference::ForFloating("values", dtype, [&](auto element) {
            fn(element);
            return absl::OkStatus();
          });
      TROUPE_CHECK(status.ok(), "the other dtypes are floating");
    }
  }
}

}  // namespace

Tensor MakeTensor(const Shape& shape, DType dtype,
                  const std::vector<double>& values, Allocator& allocator) {
  TROUPE_CHECK(static_cast<std::int64_t>(values.size()) == shape.numel(),
               "as many values as the shape has elements");
  Tensor t = Tensor::Empty(shape, dtype, allocator);
  ForElement(dtype, [&](auto element) {
    using T = decltype(element);
    T* data = t.data<T>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        data[i] = static_cast<T>(values[i]);
      } else {
        data[i] = reference::Store<T>(values[i]);
      }
    }
  });
  return t;
}

std::vector<double> ValuesOf(const Tensor& tensor) {
  std::vector<double> values(tensor.numel());
  ForElement(tensor.dtype(), [&](auto element) {
    using reference::Load;
    using T = decltype(element);
    const T* data = tensor.data<T>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        values[i] = nn::Load(data[i]);
      } else {
        values[i] = Load(data[i]);
      }
    }
  });
  return values;
}

std::vector<double> NormalDraws(absl::string_view name, std::int64_t count) {
  // Cached, since suites run a case on many kernel sets and in every dtype:
  // draws would take four tenths of the time of the op tests.
  static absl::Mutex& mutex = *new absl::Mutex;
  static auto& drawn =
      *new absl::flat_hash_map<std::string, std::vector<double>>;
  absl::MutexLock lock(&mutex);
  std::vector<double>& draws = drawn[name];
  const auto wanted = static_cast<std::size_t>(count);
  if (draws.size() < wanted) {
    RandomStream stream(RandomKey(0, Purpose::kTest), {0, 0, HashName(name)});
    draws.resize(wanted);
    for (double& draw : draws) draw = stream.Normal();
  }
  return std::vector<double>(draws.begin(), draws.begin() + count);
}

Difference Compare(const std::vector<double>& got,
                   const std::vector<double>& want) {
  double squares = 0, want_squares = 0, largest = 0, want_largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isfinite(want[i])) {
      want_squares += want[i] * want[i];
      want_largest = std::max(want_largest, std::fabs(want[i]));
    }
    if (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) {
      continue;
    }
    double apart = std::fabs(got[i] - want[i]);
    if (std::isnan(apart)) apart = std::numeric_limits<double>::infinity();
    squares += apart * apart;
    largest = std::max(largest, apart);
  }
  Difference difference;
  difference.norm =
      std::sqrt(squares) / (want_squares > 0 ? std::sqrt(want_squares) : 1);
  difference.max = largest / (want_largest > 0 ? want_largest : 1);
  return difference;
}

::testing::AssertionResult Near(const std::vector<double>& got,
                                const std::vector<double>& want,
                                double tolerance) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure()
           << got.size() << " elements instead of " << want.size();
  }
  const Difference difference = Compare(got, want);
  if (difference.norm <= tolerance && difference.max <= tolerance) {
    return ::testing::AssertionSuccess();
  }
  auto failure = ::testing::AssertionFailure();
  failure << "differs by " << difference.norm << " of the norm and "
          << difference.max << " of the maximum, more than " << tolerance;
  for (std::size_t i = 0, shown = 0; i < want.size() && shown < 4; ++i) {
    if (got[i] == want[i]) continue;
    failure << "; [" << i << "] " << got[i] << ", not " << want[i];
    ++shown;
  }
  return failure;
}

double OpTolerance(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-14;
    case DType::kBF16:
      return 0x1p-7;  // one unit in the last place of the largest element
    case DType::kF16:
      return 0x1p-10;
    default:
      return 2e-6;
  }
}

}  // namespace troupe::nn
