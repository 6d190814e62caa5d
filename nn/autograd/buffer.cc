#include "nn/autograd/buffer.h"

#include "absl/strings/str_cat.h"

namespace troupe::nn {

absl::Status BindBuffers(absl::Span<Buffer* const> buffers, Kernels& kernels) {
  for (Buffer* buffer : buffers) {
    buffer->value =
        Tensor::Empty(buffer->shape, buffer->dtype, kernels.allocator());
    const absl::Status status = kernels.Fill(buffer->initial, buffer->value);
    if (status.ok()) continue;
    return absl::Status(status.code(), absl::StrCat("buffer ", buffer->name,
                                                    ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn
