#include "nn/modules/parameter_dtype.h"

#include "base/check.h"

namespace troupe::nn {

void SetParameterDType(Module& model, DType dtype) {
  TROUPE_CHECK(IsFloating(dtype), "parameters become floats");
  for (Parameter* parameter : model.Parameters()) {
    if (IsFloating(parameter->dtype)) parameter->dtype = dtype;
  }
}

}  // namespace troupe::nn
