// Describes a matrix product without its numbers: shapes, dtypes and the
// epilogue that is applied to the result before it is stored. It is the key by
// which an algorithm is chosen.
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
// Uses no CUDA, so it is tested everywhere. Threads: plain data.

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

// GELU is the tanh form: 0.5 s (1 + tanh(sqrt(2/pi) (s + 0.044715 s^3))). s is
// the product. Vectors and aux have the result's dtype. With an aux, cols must
// be a multiple of 8.
enum class Epilogue : std::uint8_t {
  kNone,          // c = s, or c + s
  kBias,          // c = s + bias[cols]
  kReluBias,      // c = max(s + bias[cols], 0)
  kGeluBias,      // aux[rows, cols] = s + bias[cols]; c = gelu of that
  kGeluBackward,  // c = s gelu'(aux[rows, cols])
  kRowSums,       // c = s, or c + s; row_sums[rows] = sums of a over depth:
                  // a bias gradient if a is dy^T
};

struct MatmulSpec {
  std::int64_t rows = 0, cols = 0, depth = 0;  // each at least 1
  bool transpose_a = false;                    // a is stored as [depth, rows]
  bool transpose_b = false;                    // b is stored as [cols, depth]
  DType dtype = DType::kF32;      // dtype of a and b: f32, bf16, f16
  DType out_dtype = DType::kF32;  // dtype of the result: f32 or `dtype`
  Epilogue epilogue = Epilogue::kNone;
  bool accumulate = false;  // adds to c; with kNone and kRowSums only
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

  //   kInvalidArgument: extents, dtypes or epilogue are wrong; names which.
  absl::Status Check() const;
  // Returns a word (letters, digits and ".:_+") that is unique to the spec:
  // "matmul:bf16:f32:768.3072.8192:tn:row_sums+acc".
  std::string Key() const;
};

// Device memory, aligned to kOperandAlignmentBytes. Pointers that the epilogue
// does not use are null. No output may overlap an operand.
struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;           // also read if the product accumulates
  const void* bias = nullptr;  // [cols]
  void* aux = nullptr;         // [rows, cols]; written by kGeluBias only
  void* row_sums = nullptr;    // [rows], written
};

// Returns kInvalidArgument if an operand of `spec` is missing or not aligned.
// Every Run() calls it first.
absl::Status CheckOperands(const MatmulSpec& spec,
                           const MatmulOperands& operands);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_MATMUL_SPEC_H_
