#include "nn/autograd/buffer.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::nn {
namespace {

absl::Status Bind(Buffer& buffer, Kernels& kernels) {
  TROUPE_ASSIGN_OR_RETURN(
      buffer.value,
      Tensor::Create(buffer.shape, buffer.dtype, kernels.allocator()));
  return kernels.Fill(buffer.initial, buffer.value);
}

}  // namespace

absl::Status BindBuffers(absl::Span<Buffer* const> buffers, Kernels& kernels) {
  for (Buffer* buffer : buffers) {
    const absl::Status status = Bind(*buffer, kernels);
    if (status.ok()) continue;
    return base::WithMessage(
        status, absl::StrCat("buffer ", buffer->name, ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn
