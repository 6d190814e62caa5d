// What a matrix product is, apart from its numbers: shapes, dtypes and what is
// done to the result on its way to memory.
//
//   MatmulSpec spec;               // y[N, M] = relu(x[N, K] w[M, K]^T + b)
//   spec.rows = n, spec.cols = m, spec.depth = k;
//   spec.transpose_b = true;               // w lies as [M, K]
//   spec.dtype = spec.out_dtype = DType::kBF16;
//   spec.epilogue = Epilogue::kReluBias;
//   TROUPE_RETURN_IF_ERROR(spec.Check());
//   const std::string key = spec.Key();    // names it in a choice cache
//
// All matrices are row-major and dense:
//
//     c[rows, cols] = Epilogue(a[rows, depth] b[depth, cols])
//
// No CUDA in here, so that it is tested everywhere. Threads: plain data.

#ifndef NN_KERNELS_CUDA_LIBRARIES_MATMUL_SPEC_H_
#define NN_KERNELS_CUDA_LIBRARIES_MATMUL_SPEC_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "nn/kernels/cuda/libraries/operand_checks.h"
#include "nn/tensor/dtype.h"

namespace troupe::nn::cuda {

// GELU is the one with tanh: 0.5 s (1 + tanh(sqrt(2/pi) (s + 0.044715 s^3))).
// Vectors and aux have the result's dtype. cols is a multiple of 8 where there
// is an aux.
enum class Epilogue : std::uint8_t {
  kNone,          // c = s, or c + s
  kBias,          // c = s + bias[cols]
  kReluBias,      // c = max(s + bias[cols], 0)
  kGeluBias,      // aux[rows, cols] = s + bias[cols]; c = gelu of that
  kGeluBackward,  // c = s gelu'(aux[rows, cols])
  kRowSums,       // c = s, or c + s; row_sums[rows] = sums of a over depth:
                  // a bias gradient where a is dy^T
};

struct MatmulSpec {
  std::int64_t rows = 0, cols = 0, depth = 0;  // each at least 1
  bool transpose_a = false;                    // a lies as [depth, rows]
  bool transpose_b = false;                    // b lies as [cols, depth]
  DType dtype = DType::kF32;                   // of a and b: f32, bf16, f16
  DType out_dtype = DType::kF32;               // f32, or that of a and b
  Epilogue epilogue = Epilogue::kNone;
  bool accumulate = false;  // adds to c; with kNone and kRowSums
  // Whether f32 operands may be rounded to TF32 (10 bits); sums stay in f32.
  bool allow_tf32 = false;

  bool has_bias() const {
    return epilogue == Epilogue::kBias || epilogue == Epilogue::kReluBias ||
           epilogue == Epilogue::kGeluBias;
  }
  bool has_aux() const {
    return epilogue == Epilogue::kGeluBias ||
           epilogue == Epilogue::kGeluBackward;
  }

  // All members, in order.
  auto Fields() const {
    return std::make_tuple(rows, cols, depth, transpose_a, transpose_b, dtype,
                           out_dtype, epilogue, accumulate, allow_tf32);
  }
  friend bool operator==(const MatmulSpec& a, const MatmulSpec& b) {
    return a.Fields() == b.Fields();
  }
  template <typename H>
  friend H AbslHashValue(H h, const MatmulSpec& spec) {
    return H::combine(std::move(h), spec.Fields());
  }

  //   kInvalidArgument: extents, dtypes or epilogue do not go together; says
  //     what.
  absl::Status Check() const;
  // Letters, digits and ".:_+" without spaces, other for each other spec:
  // "matmul:bf16:f32:768.3072.8192:tn:row_sums+acc".
  std::string Key() const;
};

// Device memory, aligned to kOperandAlignmentBytes. Null where the epilogue
// has no such operand. No output overlaps an operand.
struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;           // read too where the product accumulates
  const void* bias = nullptr;  // [cols]
  void* aux = nullptr;         // [rows, cols]; written by kGeluBias only
  void* row_sums = nullptr;    // [rows], written
};

// kInvalidArgument where an operand of `spec` is missing or not aligned; what
// every Run() begins with.
absl::Status CheckOperands(const MatmulSpec& spec,
                           const MatmulOperands& operands);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_MATMUL_SPEC_H_
