#include "troupe/internal/buffer_sync.h"

#include <algorithm>
#include <cstdint>

#include "base/status_error.h"

namespace troupe {
namespace {

bool IsFloat(nn::DType dtype) {
  return dtype == nn::DType::kF32 || dtype == nn::DType::kF64 ||
         dtype == nn::DType::kBF16 || dtype == nn::DType::kF16;
}

void Multiply(nn::Kernels& kernels, nn::Tensor& x, double factor) {
  nn::Tensor factors = base::OrThrow(
      nn::Tensor::Create({1}, nn::DType::kF64, kernels.allocator()));
  base::OrThrow(kernels.Fill(factor, factors));
  base::OrThrow(kernels.Scale(x, factors, x));
}

}  // namespace

BufferSync::BufferSync(Group& group, nn::Kernels& kernels, nn::Module& module)
    : group_(group), kernels_(kernels) {
  for (nn::Buffer* buffer : module.Buffers()) {
    if (buffer->value.numel() == 0) continue;
    const auto same = [buffer](const Range& range) {
      return range.buffers[0]->value.dtype() == buffer->value.dtype();
    };
    auto range = std::find_if(ranges_.begin(), ranges_.end(), same);
    if (range == ranges_.end()) range = ranges_.insert(range, Range());
    range->buffers.push_back(buffer);
  }
  for (Range& range : ranges_) {
    std::int64_t elements = 0;
    for (const nn::Buffer* buffer : range.buffers) {
      elements += buffer->value.numel();
    }
    const nn::Tensor& first = range.buffers[0]->value;
    range.flat = range.buffers.size() == 1
                     ? first
                     : base::OrThrow(nn::Tensor::Create(
                           {elements}, first.dtype(), kernels.allocator()));
  }
}

void BufferSync::Pack(const Range& range) {
  if (range.buffers.size() == 1) return;
  std::int64_t next = 0;
  for (const nn::Buffer* buffer : range.buffers) {
    nn::Tensor part = range.flat.FlatView(next, buffer->value.shape());
    base::OrThrow(kernels_.Copy(buffer->value, part));
    next += part.numel();
  }
}

void BufferSync::Unpack(const Range& range) {
  if (range.buffers.size() == 1) return;
  std::int64_t next = 0;
  for (nn::Buffer* buffer : range.buffers) {
    base::OrThrow(kernels_.Copy(
        range.flat.FlatView(next, buffer->value.shape()), buffer->value));
    next += buffer->value.numel();
  }
}

void BufferSync::BroadcastRange(const Range& range, int root) {
  if (group_.rank() == root) Pack(range);
  group_.Broadcast(range.flat, root);
  if (group_.rank() != root) Unpack(range);
}

void BufferSync::Broadcast(int root) {
  for (const Range& range : ranges_) BroadcastRange(range, root);
}

void BufferSync::Average(int root, bool contributes, double factor) {
  for (const Range& range : ranges_) {
    if (!IsFloat(range.flat.dtype())) {
      BroadcastRange(range, root);
      continue;
    }
    nn::Tensor flat = range.flat;
    if (contributes) {
      Pack(range);
    } else {
      base::OrThrow(kernels_.Fill(0, flat));
    }
    group_.AllReduce(flat, ReduceOp::kAvg);
    if (factor != 1) Multiply(kernels_, flat, factor);
    Unpack(range);
  }
}

}  // namespace troupe
