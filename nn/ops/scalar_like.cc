#include "nn/ops/scalar_like.h"

#include <cmath>

#include "nn/ops/op_util.h"

namespace troupe::nn::ops {

Tensor ScalarLike(Context& ctx, const char* name, const Tensor& x,
                  double value) {
  if (!ctx.ok()) return Tensor();
  const bool integers = x.defined() && x.dtype() == DType::kI64;
  if (!x.defined() || (!integers && !IsFloating(x.dtype()))) {
    return BadShapes(ctx, name, " takes floating numbers or i64, got ", Str(x));
  }
  constexpr double kIntegersMax = 9007199254740992;  // 2^53, exact as a double
  if (integers &&
      (std::floor(value) != value || std::fabs(value) > kIntegersMax)) {
    return BadShapes(ctx, name, " takes an integer beside ", Str(x), ", got ",
                     value);
  }
  Tensor scalar = ctx.Empty(name, {}, x.dtype());
  if (!ctx.computes()) return scalar;
  const absl::Status status = ctx.kernels().Fill(value, scalar);
  return status.ok() ? scalar : ctx.Fail(status);
}

}  // namespace troupe::nn::ops
