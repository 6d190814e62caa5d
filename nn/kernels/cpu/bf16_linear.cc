#include <algorithm>

#include "nn/kernels/cpu/bf16_kernels.h"

namespace troupe::nn::cpu {
namespace {

BF16Operand RowsOf(const Tensor& t, bool along_depth) {
  return {BitsOf(t), t.dim(1), along_depth};
}

void SetResult(Tensor& t, BF16Product& product) {
  product.c_stride = t.dim(1);
  if (t.dtype() == DType::kF32) {
    product.wide_c = t.data<float>();
  } else {
    product.c = static_cast<std::uint16_t*>(t.raw());
  }
}

// Number of weights from which on tiles are faster, despite the cost of a call.
// It does not depend on the number of rows: a row's bits are its own.
constexpr std::int64_t kTilesMin = std::int64_t{1} << 12;

// x [n, k], w [m, k], y [n, m].
struct Sizes {
  std::int64_t n, k, m;
};

// Multiplies by tiles, if the CPU has them; false: not computed.
absl::StatusOr<bool> MultiplyTiles(CpuDevice& cpu, OneDnn::Way way,
                                   const Sizes& size, In a, In b, In bias,
                                   bool accumulate, Tensor& result) {
  if (!cpu.uses_bf16_tiles() || size.k * size.m < kTilesMin) {
    return false;
  }
  const bool wide = result.dtype() == DType::kF32;
  TROUPE_RETURN_IF_ERROR(cpu.onednn().Linear(way, size.n, size.k, size.m,
                                             BitsOf(a), BitsOf(b), BitsOf(bias),
                                             accumulate, wide, result.raw()));
  return true;
}

// Returns false if several threads compute a large product: oneDNN does so in
// f32.
absl::StatusOr<bool> Multiply(CpuDevice& cpu, const BF16Product& product) {
  if (cpu.threads() > 1 &&
      product.rows * product.cols * product.depth >= (1 << 20)) {
    return false;
  }
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.bf16_loops()->scratch()));
  cpu.bf16_loops()->multiply(product, scratch);
  return true;
}

}  // namespace

absl::StatusOr<bool> LinearForwardBF16(CpuDevice& cpu, In x, In w, In b,
                                       Tensor& y) {
  TROUPE_ASSIGN_OR_RETURN(const bool tiled,
                          MultiplyTiles(cpu, OneDnn::Way::kForward,
                                        {x.dim(0), x.dim(1), w.dim(0)}, x, w, b,
                                        /*accumulate=*/false, y));
  if (tiled) return true;
  BF16Product p{/*rows=*/x.dim(0), /*cols=*/w.dim(0), /*depth=*/x.dim(1),
                RowsOf(x, true), RowsOf(w, true)};
  p.bias = BitsOf(b);
  SetResult(y, p);
  return Multiply(cpu, p);
}

absl::StatusOr<bool> LinearBackwardInputBF16(CpuDevice& cpu, In dy, In w,
                                             Tensor& dx) {
  TROUPE_ASSIGN_OR_RETURN(
      const bool tiled,
      MultiplyTiles(cpu, OneDnn::Way::kBackwardInput,
                    {dy.dim(0), w.dim(1), w.dim(0)}, dy, w, Tensor(),
                    /*accumulate=*/false, dx));
  if (tiled) return true;
  BF16Product p{/*rows=*/dy.dim(0), /*cols=*/w.dim(1), /*depth=*/w.dim(0),
                RowsOf(dy, true), RowsOf(w, false)};
  SetResult(dx, p);
  return Multiply(cpu, p);
}

absl::StatusOr<bool> LinearBackwardWeightBF16(CpuDevice& cpu, In x, In dy,
                                              bool accumulate, Tensor& dw,
                                              Tensor& db) {
  TROUPE_ASSIGN_OR_RETURN(bool computed,
                          MultiplyTiles(cpu, OneDnn::Way::kBackwardWeight,
                                        {x.dim(0), x.dim(1), dy.dim(1)}, x, dy,
                                        Tensor(), accumulate, dw));
  if (!computed) {
    BF16Product p{/*rows=*/dy.dim(1), /*cols=*/x.dim(1), /*depth=*/x.dim(0),
                  RowsOf(dy, false), RowsOf(x, false)};
    p.accumulate = accumulate;
    SetResult(dw, p);
    TROUPE_ASSIGN_OR_RETURN(computed, Multiply(cpu, p));
  }
  if (computed && db.defined()) {
    TROUPE_RETURN_IF_ERROR(ColumnSumsBF16(cpu, dy, accumulate, db));
  }
  return computed;
}

absl::StatusOr<bool> LinearBackwardWeightRowsBF16(CpuDevice& cpu, In x, In dy,
                                                  std::int64_t begin,
                                                  Tensor& dw) {
  BF16Operand columns = RowsOf(dy, false);
  columns.data += begin;
  BF16Product p{/*rows=*/dw.dim(0), /*cols=*/x.dim(1), /*depth=*/x.dim(0),
                columns, RowsOf(x, false)};
  SetResult(dw, p);
  return Multiply(cpu, p);
}

std::int64_t LinearRowsMinBF16(const CpuDevice& cpu, std::int64_t n) {
  if (cpu.bf16_loops() == nullptr || cpu.uses_bf16_tiles()) return 0;
  return cpu.bf16_loops()->rows_min(n);
}

absl::Status ColumnSumsBF16(CpuDevice& cpu, In dy, bool accumulate,
                            Tensor& db) {
  const std::int64_t N = dy.dim(0), M = dy.dim(1);
  // Size of blocks of rows that stay in the cache, and that the loops sum as
  // one.
  const std::int64_t block = M < 16 ? 8192 : 512;
  TROUPE_ASSIGN_OR_RETURN(float* const sums,
                          cpu.Scratch(M + std::min(block, N) * M));
  float* const rows = sums + M;
  auto* const result = static_cast<std::uint16_t*>(db.raw());
  if (accumulate) cpu.loops().widen_bf16(M, result, sums);
  for (std::int64_t i = 0; i == 0 || i < N; i += block) {
    const std::int64_t count = std::min(block, N - i);
    cpu.loops().widen_bf16(count * M, BitsOf(dy) + i * M, rows);
    cpu.loops().column_sums(count, M, rows, accumulate || i > 0, sums);
  }
  cpu.loops().narrow_bf16(M, sums, result);
  return absl::OkStatus();
}

}  // namespace troupe::nn::cpu
