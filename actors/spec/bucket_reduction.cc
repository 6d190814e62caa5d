#include "actors/spec/bucket_reduction.h"

#include "absl/strings/str_cat.h"

namespace troupe::actors {

absl::StatusOr<nn::Tensor> GradientBucket::Allocate(nn::DType dtype) const {
  absl::StatusOr<nn::Tensor> tensor =
      nn::Tensor::Create({elems}, dtype, *memory);
  if (tensor.ok()) return tensor;
  return absl::Status(tensor.status().code(),
                      absl::StrCat("gradients as they are reduced: ",
                                   tensor.status().message()));
}

}  // namespace troupe::actors
