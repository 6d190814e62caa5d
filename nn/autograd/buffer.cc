#include "nn/autograd/buffer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::nn {
namespace {

// Alignment of a buffer within a block.
constexpr std::int64_t kAlignBytes = 64;

absl::Status InBuffer(const Buffer& buffer, const absl::Status& status) {
  if (status.ok()) return status;
  return base::WithMessage(
      status, absl::StrCat("buffer ", buffer.name, ": ", status.message()));
}

absl::Status Bind(Buffer& buffer, Kernels& kernels) {
  TROUPE_ASSIGN_OR_RETURN(
      buffer.value,
      Tensor::Create(buffer.shape, buffer.dtype, kernels.allocator()));
  return kernels.Fill(buffer.initial, buffer.value);
}

// Allocates one block for `buffers`, which are of one dtype.
absl::StatusOr<Tensor> BindBlock(absl::Span<Buffer* const> buffers,
                                 Kernels& kernels) {
  const DType dtype = buffers[0]->dtype;
  const std::int64_t unit =
      kAlignBytes / static_cast<std::int64_t>(SizeOf(dtype));
  std::vector<std::int64_t> begins;
  std::int64_t end = 0;
  for (const Buffer* buffer : buffers) {
    begins.push_back(end);
    end += (buffer->shape.numel() + unit - 1) / unit * unit;
  }
  absl::StatusOr<Tensor> block =
      Tensor::Create({end}, dtype, kernels.allocator());
  if (!block.ok()) return InBuffer(*buffers[0], block.status());
  // The gaps are exchanged, too.
  TROUPE_RETURN_IF_ERROR(kernels.Fill(0, *block));
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    Buffer& buffer = *buffers[i];
    buffer.value = block->FlatView(begins[i], buffer.shape);
    TROUPE_RETURN_IF_ERROR(
        InBuffer(buffer, kernels.Fill(buffer.initial, buffer.value)));
  }
  return block;
}

}  // namespace

absl::Status BindBuffers(absl::Span<Buffer* const> buffers, Kernels& kernels) {
  for (Buffer* buffer : buffers) {
    TROUPE_RETURN_IF_ERROR(InBuffer(*buffer, Bind(*buffer, kernels)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> BindBuffersInBlocks(
    absl::Span<Buffer* const> buffers, Kernels& kernels) {
  std::vector<std::vector<Buffer*>> by_dtype;
  for (Buffer* buffer : buffers) {
    const auto found = std::find_if(
        by_dtype.begin(), by_dtype.end(),
        [&](const auto& list) { return list[0]->dtype == buffer->dtype; });
    if (found == by_dtype.end()) {
      by_dtype.push_back({buffer});
    } else {
      found->push_back(buffer);
    }
  }
  std::vector<Tensor> blocks;
  for (const std::vector<Buffer*>& list : by_dtype) {
    TROUPE_ASSIGN_OR_RETURN(Tensor block, BindBlock(list, kernels));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace troupe::nn
