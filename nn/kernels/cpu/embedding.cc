#include <cstring>

#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/cpu_kernel_set.h"

namespace troupe::nn::cpu {

absl::Status CpuKernelSet::EmbeddingForward(const Tensor& rows,
                                            const Tensor& table, Tensor& y) {
  if (!IsFloating(table.dtype())) return Unsupported("EmbeddingForward", table);
  const std::int64_t* row = rows.data<std::int64_t>();
  const std::size_t row_bytes = table.dim(1) * SizeOf(table.dtype());
  const char* from = static_cast<const char*>(table.raw());
  char* to = static_cast<char*>(y.raw());
  for (std::int64_t r = 0; r < rows.numel(); ++r) {
    if (row[r] < 0 || row[r] >= table.dim(0)) {
      return absl::OutOfRangeError(absl::StrCat("Embedding: index ", r, " is ",
                                                row[r], ", but the table has ",
                                                table.dim(0), " rows"));
    }
    std::memcpy(to + r * row_bytes, from + row[r] * row_bytes, row_bytes);
  }
  return absl::OkStatus();
}

absl::Status CpuKernelSet::EmbeddingBackward(const Tensor& rows,
                                             const Tensor& dy, bool accumulate,
                                             Tensor& dtable) {
  if (IsNarrow(dy)) {
    Widened wide(*this, allocator_);
    Tensor wide_d = wide.Out(dtable, /*read=*/accumulate);
    return wide.Finish(
        EmbeddingBackward(rows, wide.In(dy), accumulate, wide_d));
  }
  if (dy.dtype() != DType::kF32) return Unsupported("EmbeddingBackward", dy);
  const std::int64_t width = dtable.dim(1);
  const std::int64_t* row = rows.data<std::int64_t>();
  const float* from = dy.data<float>();
  float* to = dtable.data<float>();
  if (!accumulate) loops_.fill(dtable.numel(), 0.0f, to);
  for (std::int64_t r = 0; r < rows.numel(); ++r) {
    float* sum = to + row[r] * width;
    loops_.add(width, sum, from + r * width, sum);
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn::cpu
