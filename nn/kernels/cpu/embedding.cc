#include <cstring>

#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

absl::Status NoSuchRow(std::int64_t r, std::int64_t row, std::int64_t rows) {
  return absl::OutOfRangeError(absl::StrCat("Embedding: index ", r, " is ", row,
                                            ", but the table has ", rows,
                                            " rows"));
}

// Copies rows unchanged, of any floating dtype.
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
      return NoSuchRow(r, row[r], table.dim(0));
    }
    std::memcpy(to + r * row_bytes, from + row[r] * row_bytes, row_bytes);
  }
  return absl::OkStatus();
}

// The same of the rows of a piece, with zeros for others.
absl::Status PieceEmbeddingForward(CpuDevice&, In rows, std::int64_t first,
                                   std::int64_t whole, In piece, Tensor& y) {
  if (!IsFloating(piece.dtype())) {
    return DoesNotCompute("PieceEmbeddingForward", piece.dtype(),
                          piece.device());
  }
  const std::int64_t* row = rows.data<std::int64_t>();
  const std::size_t row_bytes = piece.dim(1) * SizeOf(piece.dtype());
  const char* from = static_cast<const char*>(piece.raw());
  char* to = static_cast<char*>(y.raw());
  for (std::int64_t r = 0; r < rows.numel(); ++r) {
    if (row[r] < 0 || row[r] >= whole) return NoSuchRow(r, row[r], whole);
    const std::int64_t own = row[r] - first;
    if (own >= 0 && own < piece.dim(0)) {
      std::memcpy(to + r * row_bytes, from + own * row_bytes, row_bytes);
    } else {
      std::memset(to + r * row_bytes, 0, row_bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status PieceEmbeddingBackward(CpuDevice& cpu, In rows, std::int64_t first,
                                    In dy, std::int64_t padding_row,
                                    bool accumulate, Tensor& dpiece) {
  const std::int64_t width = dpiece.dim(1);
  const std::int64_t* row = rows.data<std::int64_t>();
  const float* from = dy.data<float>();
  float* to = dpiece.data<float>();
  if (!accumulate) cpu.loops().fill(dpiece.numel(), 0.0f, to);
  for (std::int64_t r = 0; r < rows.numel(); ++r) {
    const std::int64_t own = row[r] - first;
    if (row[r] == padding_row || own < 0 || own >= dpiece.dim(0)) continue;
    float* sum = to + own * width;
    cpu.loops().add(width, sum, from + r * width, sum);
  }
  return absl::OkStatus();
}

absl::Status EmbeddingBackward(CpuDevice& cpu, In rows, In dy,
                               std::int64_t padding_row, bool accumulate,
                               Tensor& dtable) {
  const std::int64_t width = dtable.dim(1);
  const std::int64_t* row = rows.data<std::int64_t>();
  const float* from = dy.data<float>();
  float* to = dtable.data<float>();
  if (!accumulate) cpu.loops().fill(dtable.numel(), 0.0f, to);
  for (std::int64_t r = 0; r < rows.numel(); ++r) {
    if (row[r] == padding_row) continue;
    float* sum = to + row[r] * width;
    cpu.loops().add(width, sum, from + r * width, sum);
  }
  return absl::OkStatus();
}

absl::Status AddPositions(CpuDevice& cpu, In x, In table, std::int64_t first,
                          Tensor& y) {
  const std::int64_t sample = x.dim(1) * x.dim(2);
  const float* add = table.data<float>() + first * table.dim(1);
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    cpu.loops().add(sample, x.data<float>() + n * sample, add,
                    y.data<float>() + n * sample);
  }
  return absl::OkStatus();
}

absl::Status AddPositionsBackward(CpuDevice& cpu, In dy, std::int64_t first,
                                  bool accumulate, Tensor& dtable) {
  const std::int64_t sample = dy.dim(1) * dy.dim(2);
  const std::int64_t begin = first * dtable.dim(1), end = begin + sample;
  float* to = dtable.data<float>();
  if (!accumulate) {
    cpu.loops().fill(begin, 0.0f, to);
    cpu.loops().fill(dtable.numel() - end, 0.0f, to + end);
  }
  cpu.loops().column_sums(dy.dim(0), sample, dy.data<float>(), accumulate,
                          to + begin);
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, EmbeddingKernels& ops) {
  ops.EmbeddingForward.Bind<EmbeddingForward>(&cpu);
  BindF32<EmbeddingBackward>(cpu, ops.EmbeddingBackward);
  ops.PieceEmbeddingForward.Bind<PieceEmbeddingForward>(&cpu);
  BindF32<PieceEmbeddingBackward>(cpu, ops.PieceEmbeddingBackward);
  BindF32<AddPositions>(cpu, ops.AddPositions);
  BindF32<AddPositionsBackward>(cpu, ops.AddPositionsBackward);
}

}  // namespace troupe::nn::cpu
