#include "nn/modules/parameter_dtype.h"

#include "base/check.h"

namespace troupe::nn {

void SetParameterDType(Module& model, DType dtype) {
  TROUPE_CHECK(IsFloating(dtype), "parameters become floats");
  for (Parameter* parameter : model.Parameters()) {
    if (IsFloating(parameter->dtype)) parameter->dtype = dtype;
  }
  const DType kept = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  for (Buffer* buffer : model.Buffers()) {
    if (!IsFloating(buffer->dtype)) continue;
    buffer->dtype = kept;
    buffer->value = Tensor::Meta(buffer->shape, kept, buffer->value.device());
  }
}

}  // namespace troupe::nn
