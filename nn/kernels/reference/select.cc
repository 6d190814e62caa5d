#include "nn/kernels/select.h"

#include <cstring>

#include "nn/kernels/reference/offsets.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

// Copies elements of any dtype, as bytes.
template <typename ThisOp>
absl::Status Select(const ThisOp& op, FixedIn condition, FixedIn a, FixedIn b,
                    FixedOut y) {
  const Shape& shape = y.tensor.shape();
  const StridedLoops sides =
      BroadcastLoops(shape, a.tensor.shape(), b.tensor.shape());
  const StridedLoops flags =
      BroadcastLoops(shape, condition.tensor.shape(), shape);
  const std::size_t size = SizeOf(y.tensor.dtype());
  const char* const from_a = static_cast<const char*>(a.tensor.raw());
  const char* const from_b = static_cast<const char*>(b.tensor.raw());
  char* const to = static_cast<char*>(y.tensor.raw());
  return ForFloating(op.name(), condition.tensor.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* const flag = condition.tensor.data<T>();
    for (std::int64_t i = 0; i < y.tensor.numel(); ++i) {
      const Offsets at = OffsetsOf(sides, i);
      const bool take_a = Load(flag[OffsetsOf(flags, i).a]) != 0;
      std::memcpy(to + i * size,
                  take_a ? from_a + at.a * size : from_b + at.b * size, size);
    }
    return absl::OkStatus();
  });
}

struct CompareIntegers {
  template <typename T>
  static absl::Status Run(BinaryFunction f, In a, In b, Tensor& y) {
    const StridedLoops loops = BroadcastLoops(y.shape(), a.shape(), b.shape());
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const Offsets at = OffsetsOf(loops, i);
      const std::int64_t left = a.data<std::int64_t>()[at.a];
      const std::int64_t right = b.data<std::int64_t>()[at.b];
      const bool holds = f == BinaryFunction::kEqual      ? left == right
                         : f == BinaryFunction::kNotEqual ? left != right
                         : f == BinaryFunction::kLess     ? left < right
                                                          : left <= right;
      y.data<T>()[i] = Store<T>(holds ? 1 : 0);
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(SelectKernels& ops) {
  ops.Select.BindFunction(Select, nullptr);
  BindFloating<CompareIntegers>(ops.CompareIntegers);
}

}  // namespace troupe::nn::reference
