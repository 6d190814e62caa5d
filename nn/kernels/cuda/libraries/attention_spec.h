// Describes a call of attention without its numbers: the key by which an
// algorithm is chosen. Also decides which calls a library may compute at all.
//
//   AttentionSpec spec;
//   spec.way = AttentionWay::kForward;
//   spec.size = {N, T, S, Hq, Hkv, D};
//   spec.packing = AttentionPacking::kAll;   // q, k and v are one tensor
//   spec.causal = true;
//   spec.dtype = DType::kBF16;
//   TROUPE_RETURN_IF_ERROR(spec.Check());
//   const std::string key = spec.Key();      // names it in a choice cache
//
// Letters, operands and packing are those of nn/kernels/attention.h. The scale
// of the scores is an operand rather than part of the spec: no algorithm
// depends on it.
//
// Uses no CUDA, so it is tested everywhere. Threads: plain data.

#ifndef NN_KERNELS_CUDA_LIBRARIES_ATTENTION_SPEC_H_
#define NN_KERNELS_CUDA_LIBRARIES_ATTENTION_SPEC_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "nn/kernels/attention.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::cuda {

enum class AttentionWay : std::uint8_t {
  kForward,   // y and lse
  kBackward,  // dq, dk and dv
};

enum class AttentionPacking : std::uint8_t { kApart, kKeysAndValues, kAll };

struct AttentionSpec {
  AttentionWay way = AttentionWay::kForward;
  AttentionSizes size = {0, 0, 0, 0, 0, 0};  // each at least 1
  AttentionPacking packing = AttentionPacking::kApart;
  bool causal = false;
  DType dtype = DType::kBF16;  // bf16 or f16

  // Number of heads in a row of the tensor that holds the queries, the keys or
  // the values.
  std::int64_t query_row_heads() const;
  std::int64_t key_row_heads() const;
  std::int64_t value_row_heads() const;

  // All members, in order.
  auto Fields() const {
    return std::make_tuple(way, size.N, size.T, size.S, size.Hq, size.Hkv,
                           size.D, packing, causal, dtype);
  }
  friend bool operator==(const AttentionSpec& a, const AttentionSpec& b) {
    return a.Fields() == b.Fields();
  }
  template <typename Hash>
  friend Hash AbslHashValue(Hash hash, const AttentionSpec& spec) {
    return Hash::combine(std::move(hash), spec.Fields());
  }

  //   kInvalidArgument: sizes, packing or dtype are wrong; names which.
  absl::Status Check() const;
  // Returns a word that is unique to the spec: N, T, S, then Hq, Hkv and D, as
  // in "attention_forward:bf16:8.1024.1024:12.12.64:qkv+causal".
  std::string Key() const;
};

// The operands of a call. Forward reads q, k and v and writes y and lse;
// backward reads these five and dy, and writes dq, dk and dv.
struct AttentionOperands {
  double scale = 1;
  Tensor q, k, v, y, lse, dy, dq, dk, dv;
};

// Returns kInvalidArgument if an operand is missing or its address is not a
// multiple of kOperandAlignmentBytes. Every Run() of a library calls it first.
absl::Status CheckOperands(const AttentionSpec& spec,
                           const AttentionOperands& operands);

// Returns whether a library may compute the call. Only kernels of our own
// compute:
//   - f32: libraries round products of f32 to fewer bits;
//   - dropout: a library's mask is not that of nn/random/philox.h, and would be
//     another one on a GPU than on the CPU;
//   - heads of a width that is no multiple of 8 elements, or above 128;
//   - fewer than kLibraryQueriesMin queries: a thread block of a library's
//     kernels computes 64 or 128 queries and would be mostly empty, and text
//     generation, whose shape changes at each token, would choose an algorithm
//     at each token.
inline constexpr std::int64_t kLibraryQueriesMin = 64;
bool AttentionIsForLibrary(const AttentionRule& rule,
                           const AttentionSizes& size, DType dtype);

// Returns the number of samples to compute at once so that the workspace has at
// most `bytes_max`, if it has `bytes` for all N samples and grows with their
// number: the largest such divisor of N, or 0 if there is none.
std::int64_t SamplesAtOnce(std::int64_t N, std::int64_t bytes,
                           std::int64_t bytes_max);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_ATTENTION_SPEC_H_
