// Attention of the heads of queries that share one head of keys, for one
// sample, on the products of product.h (FlashAttention-2, Dao 2023,
// arXiv:2307.08691, on a CPU: blocks are sized for its caches).
//
// Keys are processed block by block, transposed and scaled once for all
// queries; scores of a few queries times a block of keys stay in the nearest
// caches. Scores that the causal rule masks are skipped in whole rows of tiles,
// and masked in the last.
//
// The order of every sum depends on the shape alone. Letters: the same as in
// nn/kernels/attention.h.

#ifndef NN_KERNELS_CPU_ATTENTION_LOOPS_H_
#define NN_KERNELS_CPU_ATTENTION_LOOPS_H_

#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/loss_loops.h"
#include "nn/kernels/cpu/product.h"
#include "nn/kernels/cpu/thin_product.h"
#include "nn/kernels/cpu/transpose.h"

namespace troupe::nn::cpu {
namespace {

// Number of queries whose scores are computed together: two tiles high, so that
// few products are spent on keys that the first of them does not see.
constexpr Index kScoreRows = 2 * MaxRows(kTileVectors);
// Largest number of queries that take keys and values in place: a copy of them
// would cost more than it saves.
constexpr Index kFewQueries = 4;
// Number of keys of a block: a panel of their values fits the nearest cache
// (AVX2). Backward holds two blocks of scores, and as many queries.
constexpr Index kForwardKeys = 256;
constexpr Index kBackwardKeys = 128;
constexpr Index kBackwardQueries = 128;

// Returns the distance between rows of a block: whole vectors, an odd number of
// them, so that a column of the block is spread over many sets of the cache.
constexpr Index RowStride(Index cols) {
  return (CeilDiv(cols, kLanes) | 1) * kLanes;
}

// Returns the floats of CopyPanels() for `rows` rows.
constexpr Index PanelFloats(Index rows, Index width) {
  return rows * CeilDiv(width, kPanel) * kPanel;
}

// Returns the floats of scratch memory of either pass.
inline Index AttentionScratch(const AttentionHeadShape& s) {
  const Index forward = (s.width + kScoreRows) * RowStride(kForwardKeys) +
                        PanelFloats(kForwardKeys, s.width) +
                        s.group * s.queries;
  const Index backward =
      2 * (s.width + kBackwardQueries) * RowStride(kBackwardKeys) +
      PanelFloats(kBackwardKeys + 2 * kBackwardQueries, s.width) +
      s.group * s.queries;
  return Max(forward, backward);
}

// Writes keys [begin, begin + count) as columns, times `scale`; `to` has rows
// of RowStride(count), zeros after the last key up to a whole vector.
inline void TransposeKeys(const AttentionHeadShape& s, const float* rows,
                          Index row, Index begin, Index count, float scale,
                          float* to) {
  const Index stride = RowStride(count);
  TransposeMatrix(count, s.width, rows + begin * row, row, to, stride,
                  /*pad=*/true, nullptr);
  if (scale == 1.0f) return;
  for (Index d = 0; d < s.width; ++d) {
    Scale(Padded(count), scale, to + d * stride, to + d * stride);
  }
}

// c[rows, cols] = a[rows, width] b[width, cols], b as TransposeKeys() wrote it.
inline void MultiplyByKeys(Index rows, Index cols, Index width, const float* a,
                           Index a_stride, const float* b, Index stride,
                           float* c) {
  Product p;
  p.rows = rows;
  p.cols = Padded(cols);
  p.depth = width;
  p.a = a;
  p.a_stride = a_stride;
  p.b = b;
  p.b_stride = stride;
  p.c = c;
  p.c_stride = stride;
  Multiply</*kPacked=*/false>(p);
}

// Copies rows[count, D], which are far apart in memory, into consecutive panels
// of columns: products that read them repeatedly then avoid cache set
// conflicts, and use few pages.
inline void CopyPanels(Index count, Index width, const float* rows, Index row,
                       float* to) {
  for (Index col = 0; col < width; col += kPanel, to += count * kPanel) {
    for (Index i = 0; i < count; ++i) {
      for (Index j = col; j < Min(col + kPanel, width); j += kLanes) {
        Store(to + i * kPanel + j - col,
              LoadSome(rows + i * row + j, First(width - j)));
      }
    }
  }
}

// Computes the product of `p` with B = rows [first, ...) of the `count` rows of
// CopyPanels(). Sets p.b and p.b_stride; p.cols is D.
template <bool kPacked>
void MultiplyByPanels(Product p, Index count, Index first, const float* b) {
  const Index width = p.cols;
  p.b_stride = kPanel;
  for (Index col = 0; col < width; col += kPanel) {
    p.cols = Min(kPanel, width - col);
    p.b = b + col * count + first * kPanel;
    Multiply<kPacked>(p);
    p.c += kPanel;
  }
}

// Returns how many of the keys [begin, begin + count) query `t` sees.
inline Index SeenOf(const AttentionHeadShape& s, Index t, Index begin,
                    Index count) {
  return s.causal ? Max(0, Min(count, t + 1 - begin)) : count;
}

inline float ExpOne(float x) {
  float lanes[kLanes];
  Store(lanes, ExpOfNegative(Set(x)));
  return lanes[0];
}

// x = e^(x - offset) for the first `seen` numbers, 0 up to `cols`; returns
// their sum. At most kDepth numbers.
inline float ExpScores(Index seen, Index cols, float offset, float* x) {
  const Vec from = Set(offset);
  Vec sum = Zero();
  Index i = 0;
  for (; i + kLanes <= seen; i += kLanes) {
    const Vec e = ExpOfNegative(Minus(Load(x + i), from));
    Store(x + i, e);
    sum = Plus(sum, e);
  }
  if (i < seen) {
    const Mask mask = First(seen - i);
    const Vec e =
        KeepSome(ExpOfNegative(Minus(Load(x + i), from)), mask, Zero());
    Store(x + i, e);
    sum = Plus(sum, e);
    i += kLanes;
  }
  for (; i < cols; i += kLanes) Store(x + i, Zero());
  return SumLanes(sum);
}

// Writes the dropout factors of the probabilities of keys
// [begin, begin + seen); `begin` is a multiple of 4, `seen` at most
// kForwardKeys. Factors from there up to `cols` are zeros. `row` is the query's
// row among all of the group's.
inline void DropFactors(const AttentionHeadShape& s, Index row, Index begin,
                        Index seen, Index cols, float* factors) {
  const AttentionDropout& dropout = *s.dropout;
  std::uint32_t words[kForwardKeys];
  FirstDraw first = dropout.first;
  first.block +=
      static_cast<std::uint32_t>(row * CeilDiv(s.keys, 4) + begin / 4);
  dropout.draw(first, words, static_cast<std::size_t>(seen));
  for (Index i = 0; i < seen; ++i) {
    factors[i] = words[i] >= dropout.drop_below ? dropout.scale : 0.0f;
  }
  Fill(cols - seen, 0.0f, factors + seen);
}

// A block of keys, and the queries of one head that use it.
struct ForwardBlock {
  Index first_key, keys;
  Index first_row;  // query 0's row among all heads' rows
  bool in_place;    // whether keys and values are read where they are
  const float* k;   // transposed and scaled, or in place
  const float* v;   // panels of CopyPanels(), or in place
  const float* q;   // this head's, from query 0
  float* y;
  float* largest;  // [T]: largest score; at last log-sum-exp
  float* sum;      // [T]: sum of e^(score - largest) so far
  float* scores;   // [kScoreRows, RowStride(keys)]
};

// Updates the softmax of one row by a block of scores. If the largest score
// changes, rescales the row of y from the blocks before.
inline void SoftmaxRow(const AttentionHeadShape& s, const ForwardBlock& b,
                       Index t, Index cols, float* scores) {
  const Index seen = SeenOf(s, t, b.first_key, b.keys);
  if (seen == 0) {
    ExpScores(0, cols, 0, scores);
    return;
  }
  const float before = b.largest[t];
  float largest = LargestOf(seen, scores);
  if (b.first_key == 0) {
    b.sum[t] = ExpScores(seen, cols, largest, scores);
  } else {
    largest = largest > before ? largest : before;
    const float factor = ExpOne(before - largest);
    if (factor != 1.0f) {
      float* const y = b.y + t * s.y_row;
      Scale(s.width, factor, y, y);
    }
    b.sum[t] = b.sum[t] * factor + ExpScores(seen, cols, largest, scores);
  }
  b.largest[t] = largest;
}

// Applies dropout to a row of probabilities.
inline void DropRow(const AttentionHeadShape& s, const ForwardBlock& b, Index t,
                    float* scores) {
  const Index seen = SeenOf(s, t, b.first_key, b.keys);
  float factors[kForwardKeys];
  DropFactors(s, b.first_row + t, b.first_key, seen, Padded(seen), factors);
  for (Index i = 0; i < seen; i += kLanes) {
    Store(scores + i, Times(Load(scores + i), Load(factors + i)));
  }
}

// Computes the scores of queries [begin, begin + rows) for `cols` keys.
inline void Scores(const AttentionHeadShape& s, const ForwardBlock& b,
                   Index begin, Index rows, Index cols) {
  const float* const q = b.q + begin * s.q_row;
  const Index stride = RowStride(b.keys);
  if (!b.in_place) {
    MultiplyByKeys(rows, cols, s.width, q, s.q_row, b.k, stride, b.scores);
    return;
  }
  ThinProduct p;
  p.rows = rows;
  p.cols = cols;
  p.depth = s.width;
  p.x = q;
  p.x_stride = s.q_row;
  p.w = b.k;
  p.w_stride = s.k_row;
  p.scale = s.scale;
  p.y = b.scores;
  p.y_stride = stride;
  MultiplyThin(p);
}

// Adds the block's values to y, by their probabilities.
inline void AddValues(const AttentionHeadShape& s, const ForwardBlock& b,
                      Index begin, Index rows, Index cols) {
  Product p;
  p.rows = rows;
  p.cols = s.width;
  p.depth = cols;
  p.a = b.scores;
  p.a_stride = RowStride(b.keys);
  p.c = b.y + begin * s.y_row;
  p.c_stride = s.y_row;
  p.accumulate = b.first_key > 0;
  if (!b.in_place) {
    MultiplyByPanels</*kPacked=*/false>(p, b.keys, 0, b.v);
    return;
  }
  p.b = b.v;
  p.b_stride = s.v_row;
  Multiply</*kPacked=*/false>(p);
}

// Processes queries [begin, begin + rows), at most kScoreRows.
inline void ForwardRows(const AttentionHeadShape& s, const ForwardBlock& b,
                        Index begin, Index rows) {
  const Index last = begin + rows - 1;
  const Index cols = SeenOf(s, last, b.first_key, b.keys);
  if (cols == 0) return;
  const Index stride = RowStride(b.keys);
  Scores(s, b, begin, rows, cols);
  for (Index i = 0; i < rows; ++i) {
    SoftmaxRow(s, b, begin + i, Padded(cols), b.scores + i * stride);
  }
  for (Index i = 0; s.dropout != nullptr && i < rows; ++i) {
    DropRow(s, b, begin + i, b.scores + i * stride);
  }
  AddValues(s, b, begin, rows, cols);
  const Index end = b.first_key + b.keys;
  if (end < s.keys && SeenOf(s, last, end, 1) > 0) return;
  for (Index t = begin; t <= last; ++t) {
    float* const y = b.y + t * s.y_row;
    Scale(s.width, 1.0f / b.sum[t], y, y);
    b.largest[t] += static_cast<float>(__builtin_log(b.sum[t]));
  }
}

inline void AttentionForward(const AttentionHeadShape& s,
                             const AttentionInputs& in, float* y, float* lse,
                             float* scratch) {
  float* const kt = scratch;
  float* const scores = kt + s.width * RowStride(kForwardKeys);
  float* const v = scores + kScoreRows * RowStride(kForwardKeys);
  float* const sums = v + PanelFloats(kForwardKeys, s.width);
  const RowCut rows(Max(s.queries, 1), kScoreRows);
  for (Index begin = 0; begin < s.keys; begin += kForwardKeys) {
    ForwardBlock b;
    b.first_key = begin;
    b.keys = Min(kForwardKeys, s.keys - begin);
    b.in_place = s.queries <= kFewQueries;
    b.k = in.k + begin * s.k_row;
    b.v = in.v + begin * s.v_row;
    b.scores = scores;
    if (!b.in_place) {
      TransposeKeys(s, in.k, s.k_row, begin, b.keys, s.scale, kt);
      CopyPanels(b.keys, s.width, b.v, s.v_row, v);
      b.k = kt;
      b.v = v;
    }
    for (Index h = 0; h < s.group && s.queries > 0; ++h) {
      b.first_row = h * s.queries;
      b.q = in.q + h * s.width;
      b.y = y + h * s.width;
      b.largest = lse + h * s.queries;
      b.sum = sums + h * s.queries;
      for (Index i = 0; i < rows.tiles; ++i) {
        ForwardRows(s, b, rows.Begin(i), rows.Height(i));
      }
    }
  }
}

constexpr void SetAttentionLoops(Loops& loops) {
  loops.attention_scratch = AttentionScratch;
  loops.attention_forward = AttentionForward;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_ATTENTION_LOOPS_H_
