#include "nn/serialize/float_conversion.h"

#include <cstdint>

#include "base/check.h"
#include "nn/tensor/dtype.h"

namespace troupe::nn {
namespace {

// Writes to[j][i] = from[i][j], in another floating type; a vector is one row.
template <typename From, typename To>
void Convert(const Tensor& from, bool transpose, const Tensor& to) {
  const From* const in = from.data<From>();
  To* const out = to.data<To>();
  const std::int64_t rows = transpose ? from.shape()[0] : 1;
  const std::int64_t columns = transpose ? from.shape()[1] : from.numel();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      out[j * rows + i] = FromF64<To>(ToF64(in[i * columns + j]));
    }
  }
}

template <typename From>
void ConvertFrom(const Tensor& from, bool transpose, const Tensor& to) {
  switch (to.dtype()) {
    case DType::kF32:
      return Convert<From, float>(from, transpose, to);
    case DType::kF64:
      return Convert<From, double>(from, transpose, to);
    case DType::kBF16:
      return Convert<From, bf16>(from, transpose, to);
    case DType::kF16:
      return Convert<From, f16>(from, transpose, to);
    default:
      TROUPE_CHECK(false, "floats become floats");
  }
}

}  // namespace

void ConvertInto(const Tensor& from, bool transpose, const Tensor& to) {
  switch (from.dtype()) {
    case DType::kF32:
      return ConvertFrom<float>(from, transpose, to);
    case DType::kF64:
      return ConvertFrom<double>(from, transpose, to);
    case DType::kBF16:
      return ConvertFrom<bf16>(from, transpose, to);
    case DType::kF16:
      return ConvertFrom<f16>(from, transpose, to);
    default:
      TROUPE_CHECK(false, "only floats are converted");
  }
}

}  // namespace troupe::nn
