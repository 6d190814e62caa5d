// The gradients of attention_loops.h. Probabilities are recomputed from
// forward's log-sum-exp, a block of queries times a block of keys at a time
// (FlashAttention-2, Dao 2023, arXiv:2307.08691, algorithm 2):
//
//     p = e^(scale q k^T - lse)         dv += p^T dy
//     ds = scale p (dy v^T - delta)     dk += ds^T q      dq += ds k
//
// Here delta[t] = dy[t] . y[t]. If dropout multiplies p by m, dv gets p m and
// ds has m dy v^T. Sums of dk and dv take queries in ascending order, those of
// dq keys.

#ifndef NN_KERNELS_CPU_ATTENTION_BACKWARD_LOOPS_H_
#define NN_KERNELS_CPU_ATTENTION_BACKWARD_LOOPS_H_

#include "nn/kernels/cpu/attention_loops.h"
#include "nn/kernels/cpu/loops.h"

namespace troupe::nn::cpu {
namespace {

// A block of keys, and the queries of one head that use it.
struct BackwardBlock {
  Index first_key, keys;
  Index first_row;       // query 0's row among all heads' rows
  const float *kt, *vt;  // transposed; kt times the scale
  const float* k;        // panels of CopyPanels()
  float *dk, *dv;
  const float *q, *dy;  // this head's, from query 0
  float* dq;
  const float* lse;    // [T]
  const float* delta;  // [T]
  // Panels of the block's rows of q and dy.
  float *q_panels, *dy_panels;
  float *p, *ds;  // [kBackwardQueries, RowStride(keys)]
};

// Turns a row of scores into probabilities, and one of `dy v^T` into ds.
// `factors`: the factors of dropout, if kDrops.
template <bool kDrops>
void ProbabilityRow(Index seen, Index cols, float lse, float delta, float scale,
                    const float* factors, float* p, float* ds) {
  const Vec of_row = Set(lse), mean = Set(delta), by = Set(scale);
  for (Index i = 0; i < cols; i += kLanes) {
    const Mask mask = First(seen - i);
    const Vec e =
        KeepSome(ExpOfNegative(Minus(Load(p + i), of_row)), mask, Zero());
    Vec kept = e, dp = Load(ds + i);
    if constexpr (kDrops) {
      kept = Times(e, Load(factors + i));
      dp = Times(dp, Load(factors + i));
    }
    const Vec d = Times(Times(e, by), Minus(dp, mean));
    Store(p + i, kept);
    Store(ds + i, KeepSome(d, mask, Zero()));
  }
}

// Computes p and ds of the queries [begin, begin + rows), as rows
// [row, row + rows) of the block; columns that none of them sees are zeros.
inline void ProbabilityRows(const AttentionHeadShape& s, const BackwardBlock& b,
                            Index begin, Index row, Index rows) {
  const Index stride = RowStride(b.keys), all = Padded(b.keys);
  const Index cols = SeenOf(s, begin + rows - 1, b.first_key, b.keys);
  float* const p = b.p + row * stride;
  float* const ds = b.ds + row * stride;
  if (cols > 0) {
    MultiplyByKeys(rows, cols, s.width, b.q + begin * s.q_row, s.q_row, b.kt,
                   stride, p);
    MultiplyByKeys(rows, cols, s.width, b.dy + begin * s.y_row, s.y_row, b.vt,
                   stride, ds);
  }
  for (Index i = 0; i < rows; ++i) {
    const Index t = begin + i, seen = SeenOf(s, t, b.first_key, b.keys);
    float* const p_row = p + i * stride;
    float* const ds_row = ds + i * stride;
    if (s.dropout == nullptr) {
      ProbabilityRow<false>(seen, Padded(cols), b.lse[t], b.delta[t], s.scale,
                            nullptr, p_row, ds_row);
    } else {
      float factors[kBackwardKeys];
      DropFactors(s, b.first_row + t, b.first_key, seen, Padded(cols), factors);
      ProbabilityRow<true>(seen, Padded(cols), b.lse[t], b.delta[t], s.scale,
                           factors, p_row, ds_row);
    }
    Fill(all - Padded(cols), 0.0f, p_row + Padded(cols));
    Fill(all - Padded(cols), 0.0f, ds_row + Padded(cols));
  }
}

// to[keys, D] += block[rows, keys]^T from[rows, D], for keys [key, key + keys)
// of the block; `from` is in panels. Rows of the block before `row` are zeros.
inline void AddByKey(const AttentionHeadShape& s, const BackwardBlock& b,
                     const float* block, Index row, Index rows, Index key,
                     Index keys, const float* from, float* to, Index to_row) {
  const Index stride = RowStride(b.keys);
  Product p;
  p.rows = keys;
  p.cols = s.width;
  p.depth = rows - row;
  p.a = block + row * stride + key;
  p.a_stride = stride;
  p.c = to + key * to_row;
  p.c_stride = to_row;
  p.accumulate = true;
  MultiplyByPanels</*kPacked=*/true>(p, rows, row, from);
}

// Adds the parts of dk and dv of the block from queries [begin, begin + rows).
inline void AddKeyGradients(const AttentionHeadShape& s, const BackwardBlock& b,
                            Index begin, Index rows) {
  // If the diagonal crosses the block, a few keys at a time: keys after the
  // last query of the block get nothing, the others only from queries at their
  // own position or later.
  const bool diagonal = s.causal && begin < b.first_key + b.keys;
  const Index step = diagonal ? kScoreRows : b.keys;
  for (Index key = 0; key < b.keys; key += step) {
    const Index row = diagonal ? Max(0, b.first_key + key - begin) : 0;
    if (row >= rows) break;
    const Index keys = Min(step, b.keys - key);
    AddByKey(s, b, b.p, row, rows, key, keys, b.dy_panels, b.dv, s.dv_row);
    AddByKey(s, b, b.ds, row, rows, key, keys, b.q_panels, b.dk, s.dk_row);
  }
}

// Adds dq of queries [begin, begin + rows), which are rows [row, ...) of the
// block.
inline void AddQueryGradients(const AttentionHeadShape& s,
                              const BackwardBlock& b, Index begin, Index row,
                              Index rows) {
  const Index stride = RowStride(b.keys);
  Product p;
  p.rows = rows;
  p.cols = s.width;
  p.depth = SeenOf(s, begin + rows - 1, b.first_key, b.keys);
  if (p.depth == 0) return;
  p.a = b.ds + row * stride;
  p.a_stride = stride;
  p.c = b.dq + begin * s.dq_row;
  p.c_stride = s.dq_row;
  p.accumulate = b.first_key > 0;
  MultiplyByPanels</*kPacked=*/false>(p, b.keys, 0, b.k);
}

// Runs the backward of a block of keys for all queries of one head.
inline void BackwardHead(const AttentionHeadShape& s, const BackwardBlock& b) {
  const Index first = s.causal ? b.first_key : 0;
  for (Index begin = first / kBackwardQueries * kBackwardQueries;
       begin < s.queries; begin += kBackwardQueries) {
    const Index queries = Min(kBackwardQueries, s.queries - begin);
    const RowCut rows(queries, kScoreRows);
    for (Index i = 0; i < rows.tiles; ++i) {
      ProbabilityRows(s, b, begin + rows.Begin(i), rows.Begin(i),
                      rows.Height(i));
    }
    CopyPanels(queries, s.width, b.q + begin * s.q_row, s.q_row, b.q_panels);
    CopyPanels(queries, s.width, b.dy + begin * s.y_row, s.y_row, b.dy_panels);
    AddKeyGradients(s, b, begin, queries);
    for (Index i = 0; i < rows.tiles; ++i) {
      AddQueryGradients(s, b, begin + rows.Begin(i), rows.Begin(i),
                        rows.Height(i));
    }
  }
}

// Computes delta[group, T].
inline void DotRows(const AttentionHeadShape& s, const float* y,
                    const float* dy, float* delta) {
  for (Index h = 0; h < s.group; ++h) {
    for (Index t = 0; t < s.queries; ++t) {
      const float* const a = y + t * s.y_row + h * s.width;
      const float* const b = dy + t * s.y_row + h * s.width;
      Vec sum = Zero();
      ForEachVector(s.width,
                    [&](auto load, auto) { sum = Fma(load(a), load(b), sum); });
      delta[h * s.queries + t] = SumLanes(sum);
    }
  }
}

inline void AttentionBackward(const AttentionHeadShape& s,
                              const AttentionInputs& in, const float* y,
                              const float* lse, const float* dy,
                              const AttentionGradients& out, float* scratch) {
  const Index stride = RowStride(kBackwardKeys);
  BackwardBlock b;
  float* const kt = scratch;
  float* const vt = kt + s.width * stride;
  b.p = vt + s.width * stride;
  b.ds = b.p + kBackwardQueries * stride;
  float* const k = b.ds + kBackwardQueries * stride;
  b.q_panels = k + PanelFloats(kBackwardKeys, s.width);
  b.dy_panels = b.q_panels + PanelFloats(kBackwardQueries, s.width);
  float* const delta = b.dy_panels + PanelFloats(kBackwardQueries, s.width);
  b.k = k;
  b.kt = kt;
  b.vt = vt;
  DotRows(s, y, dy, delta);
  for (Index begin = 0; begin < s.keys; begin += kBackwardKeys) {
    b.first_key = begin;
    b.keys = Min(kBackwardKeys, s.keys - begin);
    b.dk = out.dk + begin * s.dk_row;
    b.dv = out.dv + begin * s.dv_row;
    TransposeKeys(s, in.k, s.k_row, begin, b.keys, s.scale, kt);
    TransposeKeys(s, in.v, s.v_row, begin, b.keys, 1.0f, vt);
    CopyPanels(b.keys, s.width, in.k + begin * s.k_row, s.k_row, k);
    for (Index key = 0; key < b.keys; ++key) {
      Fill(s.width, 0.0f, b.dk + key * s.dk_row);
      Fill(s.width, 0.0f, b.dv + key * s.dv_row);
    }
    for (Index h = 0; h < s.group; ++h) {
      b.first_row = h * s.queries;
      b.q = in.q + h * s.width;
      b.dy = dy + h * s.width;
      b.dq = out.dq + h * s.width;
      b.lse = lse + h * s.queries;
      b.delta = delta + h * s.queries;
      BackwardHead(s, b);
    }
  }
}

constexpr void SetAttentionBackwardLoops(Loops& loops) {
  loops.attention_backward = AttentionBackward;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_ATTENTION_BACKWARD_LOOPS_H_
