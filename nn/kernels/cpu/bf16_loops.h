// Matrix products of bf16 on a CPU that multiplies pairs of them (AVX512-BF16),
// with sums in f32: twice the speed of f32.
//
//   BF16Product p{rows, cols, depth, {x, depth, true}, {w, depth, true}};
//   p.c = y, p.c_stride = cols;   // x w^T
//   loops.multiply(p, scratch);   // [loops.scratch()] floats
//
// An element's sum is a chain in ascending order, at most 512 terms long, and
// longer sums are sums of chains, whatever the size of the matrices.

#ifndef NN_KERNELS_CPU_BF16_LOOPS_H_
#define NN_KERNELS_CPU_BF16_LOOPS_H_

#include <cstdint>

namespace troupe::nn::cpu {

// One of the factors, as the bits of bf16: element i of term p is at
// data[i * stride + p] if `along_depth`, else at data[p * stride + i].
struct BF16Operand {
  const std::uint16_t* data = nullptr;
  std::int64_t stride = 0;
  bool along_depth = false;
};

// C[rows, cols] (+)= A B (+ bias), rounded once.
struct BF16Product {
  std::int64_t rows, cols, depth;
  BF16Operand a, b;  // a: i is a row; b: i is a column
  std::uint16_t* c = nullptr;
  std::int64_t c_stride = 0;
  bool accumulate = false;
  const std::uint16_t* bias = nullptr;  // null, or [cols]
  // If not null, C in f32 instead: not rounded, without `accumulate` and
  // `bias`.
  float* wide_c = nullptr;
};

struct BF16Loops {
  // Returns the floats of scratch memory.
  std::int64_t (*scratch)();
  void (*multiply)(const BF16Product& product, float* scratch);
  // Returns the least number of rows of a product of this depth that have the
  // same bits as in a larger product.
  std::int64_t (*rows_min)(std::int64_t depth);
};

// Requires a CPU with the instructions (base::CpuMultipliesBF16()).
const BF16Loops& Avx512BF16Loops();

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_BF16_LOOPS_H_
