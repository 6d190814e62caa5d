#include "nn/kernels/binary.h"

#include <cmath>

#include "nn/kernels/reference/offsets.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

double ValueOf(BinaryFunction f, double a, double b) {
  switch (f) {
    case BinaryFunction::kAdd:
      return a + b;
    case BinaryFunction::kSubtract:
      return a - b;
    case BinaryFunction::kMultiply:
      return a * b;
    case BinaryFunction::kDivide:
      return a / b;
    case BinaryFunction::kEqual:
      return a == b ? 1 : 0;
    case BinaryFunction::kKeep:
      return b != 0 ? a : 0;
    case BinaryFunction::kNotEqual:
      return a != b ? 1 : 0;
    case BinaryFunction::kLess:
      return a < b ? 1 : 0;
    case BinaryFunction::kLessEqual:
      return a <= b ? 1 : 0;
  }
  return std::nan("");
}

struct Binary {
  template <typename T>
  static absl::Status Run(BinaryFunction f, In a, In b, Tensor& y) {
    const StridedLoops loops = BroadcastLoops(y.shape(), a.shape(), b.shape());
    const T* left = a.data<T>();
    const T* right = b.data<T>();
    T* out = y.data<T>();
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const Offsets at = OffsetsOf(loops, i);
      out[i] = Store<T>(ValueOf(f, Load(left[at.a]), Load(right[at.b])));
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(BinaryKernels& ops) {
  BindFloating<Binary>(ops.Binary);
}

}  // namespace troupe::nn::reference
