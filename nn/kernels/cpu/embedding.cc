#include <cstring>

#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

// Copies rows as they are, of any floating dtype.
absl::Status EmbeddingForward(CpuDevice&, In rows, In table, Tensor& y) {
  if (!IsFloating(table.dtype())) {
    return DoesNotCompute("EmbeddingForward", table.dtype(), table.device());
  }
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

absl::Status EmbeddingBackward(CpuDevice& cpu, In rows, In dy, bool accumulate,
                               Tensor& dtable) {
  const std::int64_t width = dtable.dim(1);
  const std::int64_t* row = rows.data<std::int64_t>();
  const float* from = dy.data<float>();
  float* to = dtable.data<float>();
  if (!accumulate) cpu.loops().fill(dtable.numel(), 0.0f, to);
  for (std::int64_t r = 0; r < rows.numel(); ++r) {
    float* sum = to + row[r] * width;
    cpu.loops().add(width, sum, from + r * width, sum);
  }
  return absl::OkStatus();
}

}  // namespace

void BindEmbedding(CpuDevice& cpu, EmbeddingKernels& ops) {
  ops.EmbeddingForward.Bind<EmbeddingForward>(&cpu);
  BindF32<EmbeddingBackward>(cpu, ops.EmbeddingBackward);
}

}  // namespace troupe::nn::cpu
