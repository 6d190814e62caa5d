#include "nn/kernels/op.h"

#include "absl/strings/str_cat.h"

namespace troupe::nn {

absl::Status DoesNotCompute(const char* op, DType dtype, Device device) {
  return absl::UnimplementedError(
      absl::StrCat(op, " does not compute ", DTypeName(dtype), " on ",
                   device.ToString(), "; convert it to another dtype"));
}

absl::Status HasNoKernel(const char* op, Device device) {
  return absl::UnimplementedError(absl::StrCat(device.ToString(),
                                               " has no kernel for ", op,
                                               "; use another device for it"));
}

}  // namespace troupe::nn
