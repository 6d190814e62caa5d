// What a call of attention is, apart from its numbers, for whoever chooses an
// algorithm for it; and which calls a library is asked for at all.
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
// of the scores is a number like those of the operands: no algorithm depends on
// it.
//
// No CUDA in here, so that it is tested everywhere. Threads: plain data.

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

  // Heads side by side in the tensors that have the queries, keys and values.
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

  //   kInvalidArgument: sizes, packing and dtype do not go together; says what.
  absl::Status Check() const;
  // A word, other for each other spec: N, T, S, then heads and their width.
  // "attention_forward:bf16:8.1024.1024:12.12.64:qkv+causal".
  std::string Key() const;
};

// The operands of a call. Forward reads the first three and writes y and lse;
// backward reads all of these and dy, and writes the rest.
struct AttentionOperands {
  double scale = 1;
  Tensor q, k, v, y, lse, dy, dq, dk, dv;
};

// kInvalidArgument where an operand is missing or does not lie at a multiple of
// kOperandAlignmentBytes; what every Run() of a library begins with.
absl::Status CheckOperands(const AttentionSpec& spec,
                           const AttentionOperands& operands);

// Whether a library is asked for an algorithm. All else is computed by kernels
// of our own alone:
//   - f32: libraries round its products to fewer bits;
//   - dropout: a library's mask is not that of nn/random/philox.h, and would be
//     another one on a GPU than on the CPU;
//   - heads of a width that is no multiple of 8 elements, or above 128;
//   - fewer than kLibraryQueriesMin queries: blocks of a library's kernels,
//     which have 64 or 128 of them, would be empty for the most part, and text
//     that is generated token by token would choose anew at each token.
inline constexpr std::int64_t kLibraryQueriesMin = 64;
bool AttentionIsForLibrary(const AttentionRule& rule,
                           const AttentionSizes& size, DType dtype);

// How many samples to compute at once so that a workspace, which needs `bytes`
// for all N of them and grows with their number, has at most `bytes_max`: the
// largest divisor of N for which that holds, or 0.
std::int64_t SamplesAtOnce(std::int64_t N, std::int64_t bytes,
                           std::int64_t bytes_max);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_ATTENTION_SPEC_H_
