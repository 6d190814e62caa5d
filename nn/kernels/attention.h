// Kernels of scaled dot product attention (Vaswani et al. 2017,
// arXiv:1706.03762, sec. 3.2.1):
//
//   AttentionRule rule;
//   rule.causal = true;
//   rule.scale = 0.125;
//   status = kernels.AttentionForward(rule, q, k, v, y, lse);
//
// Letters: N samples, T queries, S keys, Hq heads of queries, Hkv heads of keys
// and values, D elements of a head. Head h of the queries attends to head
// h / (Hq / Hkv) of the keys (grouped-query attention, Ainslie et al. 2023,
// arXiv:2305.13245).
//
//     y[n, t, h] = sum over s of p[s] v[n, s]
//     p = softmax over s of scale * q[n, t, h] . k[n, s]
//
// Operands may be *packed*, since models compute them so: one product gives the
// queries, keys and values of a position side by side, and kernels read them in
// place, and write packed gradients.
//
//     q[N, T, Hq, D]               k[N, S, Hkv, D]      v[N, S, Hkv, D]
//     q[N, T, Hq, D]               k[N, S, 2 Hkv, D]    v undefined
//     q[N, T, Hq + 2 Hkv, D]       k undefined          v undefined
//
// A packed tensor has the heads of queries first, then those of keys, then
// those of values. A gradient is packed like its operand. Packing follows from
// which tensors are defined, not from strides: so code that treats all ops
// alike (conversions of dtypes, queues) sees each element once, and no operands
// share memory.
//
// Dropout sets some of the p[s] to 0 before they weigh the values, and
// multiplies the others by a scale; the softmax is over all keys. A row of keys
// has whole blocks of four draws: p[s] of query t of head h uses draw
// first + 4 ((h T + t) ceil(S / 4)) + s of its sample. `first` is that of the
// mask: the heads may be a part of those of the layer.
//
// No kept tensor has a size of T S: backward recomputes the probabilities from
// q, k and `lse`, block by block (FlashAttention-2, Dao 2023,
// arXiv:2307.08691), and draws the dropout again. If a library computes it on a
// GPU, the workspace of a call may grow with T S (docs/cuda.md).

#ifndef NN_KERNELS_ATTENTION_H_
#define NN_KERNELS_ATTENTION_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "nn/kernels/dropout.h"
#include "nn/kernels/op.h"

namespace troupe::nn {

struct AttentionRule {
  // Whether query t sees only keys 0 .. t, whatever S is (PyTorch's is_causal).
  bool causal = false;
  double scale = 1;
  // `first`, a multiple of 4, is the draw of head 0; rows are not used.
  std::optional<DropoutMask> dropout = {};

  // Returns how many of `keys` keys query t sees: the first ones.
  std::int64_t KeysSeen(std::int64_t t, std::int64_t keys) const {
    return causal ? std::min(t + 1, keys) : keys;
  }
};

struct AttentionSizes {
  std::int64_t N, T, S, Hq, Hkv, D;
  // Number of heads of queries for each head of keys.
  std::int64_t group() const { return Hq / Hkv; }
  // Number of blocks of draws of a row of keys, and of the rows before that of
  // query t of head h.
  std::int64_t row_blocks() const { return (S + 3) / 4; }
  std::int64_t BlocksBefore(std::int64_t h, std::int64_t t) const {
    return (h * T + t) * row_blocks();
  }
};

// Returns the first block of draws of query t of head h, if the rule drops.
inline std::int64_t FirstBlock(const AttentionRule& rule,
                               const AttentionSizes& sizes, std::int64_t h,
                               std::int64_t t) {
  return rule.dropout->first / 4 + sizes.BlocksBefore(h, t);
}

// Returns the sizes of a call; `y` has the heads of queries only.
inline AttentionSizes SizesOfAttention(In q, In k, In v, In y) {
  const std::int64_t Hq = y.dim(2);
  const std::int64_t Hkv = v.defined()   ? v.dim(2)
                           : k.defined() ? k.dim(2) / 2
                                         : (q.dim(2) - Hq) / 2;
  return {q.dim(0), q.dim(1), k.defined() ? k.dim(1) : q.dim(1),
          Hq,       Hkv,      q.dim(3)};
}

// Place of the queries, keys or values: head h of position t of a sample begins
// at element `first + t * row + h * D` of the sample in `tensor`.
struct AttentionHeads {
  const Tensor* tensor;
  std::int64_t first, row;

  // Returns the index of head 0, position 0 of sample n.
  std::int64_t Sample(std::int64_t n) const {
    return n * tensor->dim(1) * row + first;
  }
};

struct AttentionPlaces {
  AttentionHeads q, k, v;
};

// Returns the places of the operands of a call, or of their gradients.
inline AttentionPlaces PlacesOfAttention(const AttentionSizes& sizes, In q,
                                         In k, In v) {
  const std::int64_t D = sizes.D, queries = sizes.Hq * D, keys = sizes.Hkv * D;
  AttentionPlaces places;
  places.q = {&q, 0, q.dim(2) * D};
  places.k = k.defined() ? AttentionHeads{&k, 0, k.dim(2) * D}
                         : AttentionHeads{&q, queries, places.q.row};
  places.v = v.defined() ? AttentionHeads{&v, 0, v.dim(2) * D} : places.k;
  if (!v.defined()) places.v.first += keys;
  return places;
}

struct AttentionKernels {
  // y[N, T, Hq, D] as above; lse f32[N, Hq, T] = the logarithm of the sum over
  // s of e^(scale * q . k). S is 1 or more.
  Op<absl::Status(const AttentionRule& rule, In q, In k, In v, Out y,
                  FixedOut lse)>
      AttentionForward{"AttentionForward"};
  // Computes the gradients of q, k and v from forward's inputs and outputs.
  Op<absl::Status(const AttentionRule& rule, In q, In k, In v, In y,
                  FixedIn lse, In dy, Out dq, Out dk, Out dv)>
      AttentionBackward{"AttentionBackward"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = AttentionKernels;
    VisitOps<K>(visit, &K::AttentionForward, &K::AttentionBackward);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_ATTENTION_H_
