// Matrix products of bf16 in the register tiles of tile.h, by instructions that
// take pairs of terms: a vector holds two consecutive terms of the sums of
// kLanes columns, 32 bits each, and code that moves 32 bits treats them as
// floats. Blocks of B are packed into pairs, and blocks of A if its pairs are
// not contiguous; results are rounded once, block by block.

#ifndef NN_KERNELS_CPU_BF16_PRODUCT_H_
#define NN_KERNELS_CPU_BF16_PRODUCT_H_

#include <algorithm>
#include <utility>

#include "nn/kernels/cpu/bf16_loops.h"
#include "nn/kernels/cpu/tile.h"
#include "nn/kernels/cpu/transpose.h"

#if defined(__AVX512BF16__)

namespace troupe::nn::cpu {
namespace {

// sum + a[1] b[1] + a[0] b[0] in each lane, with denormals as zeros.
struct PairTerm {
  TROUPE_INLINE static Vec Add(Vec a, Vec b, Vec sum) {
    return _mm512_dpbf16_ps(sum, BitCast<__m512bh>(a), BitCast<__m512bh>(b));
  }
};

constexpr Index kPanelCols = kTileVectors * kLanes;
// Distance between pairs in a packed tile of A.
constexpr Index kTileStride = 16;

// Block sizes of a product. A block of B, and one of C, stay in the
// second-level cache: 256 KB each.
struct Cut {
  Index pairs;  // length of a chain of the sums
  Index cols, rows;
};
// 252 rows are whole tiles of 6, 9 or 14 rows.
constexpr Cut kSquare = {256, 4 * kPanelCols, 252};
// For operands that are read, or C that is written, about as fast as memory
// allows: in runs of 4 KB.
constexpr Cut kFlat = {32, 32 * kPanelCols, 18};

constexpr Index kBlockFloats = Index{1} << 16;
static_assert(kSquare.pairs * kSquare.cols == kBlockFloats);
static_assert(kFlat.pairs * kFlat.cols == kBlockFloats);

// Number of floats of scratch memory: blocks of B and C, C transposed, tiles of
// A, and rows that do not begin at whole pairs.
constexpr Index kScratchA = kSquare.pairs * kTileStride * (kSquare.rows / 6);
constexpr Index kScratchRows = kLanes * kSquare.pairs;

inline Index BF16Scratch() {
  return 3 * kBlockFloats + kScratchA + kScratchRows;
}

// Terms [first, first + count) of the sums.
struct Terms {
  Index first, count;
  Index pairs() const { return (count + 1) / 2; }
};

// Whether the terms of every element begin at a multiple of 32 bits.
inline bool BeginsAtPairs(const BF16Operand& m) {
  return m.stride % 2 == 0 &&
         reinterpret_cast<std::uintptr_t>(m.data) % sizeof(float) == 0;
}

// Whether pairs of terms are contiguous and aligned to whole pairs.
inline bool HasPairs(const BF16Operand& m, Index depth) {
  return m.along_depth && BeginsAtPairs(m) && depth % 2 == 0;
}

inline const float* PairsAt(const BF16Operand& m, Index i, Index p) {
  return reinterpret_cast<const float*>(m.data + i * m.stride + p);
}

// Interleaves kLanes elements of each of two terms as pairs; `high` may be
// null.
TROUPE_INLINE Vec PairUp(const std::uint16_t* low, const std::uint16_t* high,
                         Index count) {
  const __mmask16 all = 0xffff;
  const __mmask16 some =
      count >= kLanes ? all : static_cast<__mmask16>((1u << count) - 1);
  const __m512i first =
      _mm512_maskz_cvtepu16_epi32(all, _mm256_maskz_loadu_epi16(some, low));
  if (high == nullptr) return BitCast<Vec>(first);
  const __m512i second =
      _mm512_maskz_cvtepu16_epi32(all, _mm256_maskz_loadu_epi16(some, high));
  return BitCast<Vec>(
      _mm512_or_si512(first, _mm512_maskz_slli_epi32(all, second, 16)));
}

// Packs elements [begin, end) if the terms of a pair are in different rows:
// groups of `width`, each [pairs, to_stride]. Goes row by row, since rows may
// be pages apart.
inline void Interleave(const BF16Operand& m, Index begin, Index end,
                       const Terms& terms, Index width, Index to_stride,
                       float* to) {
  const Index group_floats = terms.pairs() * to_stride;
  for (Index p = 0; p < terms.count; p += 2, to += to_stride) {
    const std::uint16_t* low = m.data + (terms.first + p) * m.stride;
    const std::uint16_t* high = p + 1 < terms.count ? low + m.stride : nullptr;
    float* group = to;
    for (Index i = begin; i < end; i += width, group += group_floats) {
      const Index stop = Min(i + width, end);
      for (Index j = i; j < stop; j += kLanes) {
        Store(group + (j - i),
              PairUp(low + j, high ? high + j : nullptr, stop - j));
      }
    }
  }
}

// The same for at most kLanes elements whose terms are contiguous: by way of
// `rows`, if they do not begin at whole pairs or end with half of one.
inline void TransposePairs(const BF16Operand& m, Index i, Index count,
                           const Terms& terms, float* rows, float* to,
                           Index to_stride) {
  const float* from = rows;
  Index stride = kSquare.pairs;
  if (BeginsAtPairs(m) && terms.count % 2 == 0) {
    from = PairsAt(m, i, terms.first);
    stride = m.stride / 2;
  } else {
    auto* copy = reinterpret_cast<std::uint16_t*>(rows);
    for (Index k = 0; k < count; ++k, copy += 2 * kSquare.pairs) {
      const std::uint16_t* row = m.data + (i + k) * m.stride + terms.first;
      std::copy_n(row, terms.count, copy);
      if (terms.count % 2 != 0) copy[terms.count] = 0;
    }
  }
  TransposeMatrix(count, terms.pairs(), from, stride, to, to_stride,
                  /*pad=*/true, nullptr);
}

// Packs elements [begin, end) as groups of `width`, each [pairs, to_stride].
inline void Pack(const BF16Operand& m, Index begin, Index end,
                 const Terms& terms, Index width, Index to_stride, float* rows,
                 float* to) {
  if (!m.along_depth) {
    Interleave(m, begin, end, terms, width, to_stride, to);
    return;
  }
  for (Index i = begin; i < end; i += width, to += terms.pairs() * to_stride) {
    const Index stop = Min(i + width, end);
    for (Index j = i; j < stop; j += kLanes) {
      TransposePairs(m, j, Min(kLanes, stop - j), terms, rows, to + (j - i),
                     to_stride);
    }
  }
}

struct BF16Scratchpad {
  explicit BF16Scratchpad(float* scratch)
      : b(scratch),
        c(b + kBlockFloats),
        turned(c + kBlockFloats),
        a(turned + kBlockFloats),
        rows(a + kScratchA) {}
  float *b, *c, *turned, *a, *rows;
};

// Multiplies one row of tiles by the block of B, at C's columns [begin, end).
template <bool kPacked>
void MultiplyRow(TileCall t, Index height, Index begin, Index end,
                 const float* b) {
  for (Index col = begin; col < end; col += kPanelCols) {
    const Index cols = Min(kPanelCols, end - col);
    const Index vectors = CeilDiv(cols, kLanes);
    t.b = b + (col - begin) * t.depth;
    t.last = First(cols - (vectors - 1) * kLanes);
    switch (vectors) {
      case 1:
        TileOfRows<1, kPacked, PairTerm>(height)(t);
        break;
      case 2:
        TileOfRows<2, kPacked, PairTerm>(height)(t);
        break;
      case 3:
        TileOfRows<3, kPacked, PairTerm>(height)(t);
        break;
      default:
        TileOfRows<4, kPacked, PairTerm>(height)(t);
    }
    t.c += kPanelCols;
  }
}

// A rectangle of C.
struct Rectangle {
  Index row, rows, begin, end;
};

// Adds the terms to the block of C at pad.c, or overwrites it if they are the
// first.
inline void AddTerms(const BF16Product& m, const Rectangle& r,
                     const Terms& terms, Index c_stride,
                     const BF16Scratchpad& pad) {
  const Index vectors = Min(CeilDiv(r.end - r.begin, kLanes), kTileVectors);
  const Index most = MaxRows(static_cast<int>(vectors));
  // More rows than 6 might conflict in a few sets of the nearest cache.
  const bool in_place = HasPairs(m.a, m.depth) && most <= 6;
  if (!in_place) {
    Pack(m.a, r.row, r.row + r.rows, terms, most, kTileStride, pad.rows, pad.a);
  }
  TileCall t{};
  t.depth = terms.pairs();
  t.segments = 1;
  t.a_stride = in_place ? m.a.stride / 2 : kTileStride;
  t.b_stride = kPanelCols;
  t.c_stride = c_stride;
  t.whole = true;
  t.put = terms.first == 0 ? Put::kStore : Put::kAdd;
  for (Index row = 0; row < r.rows; row += most) {
    const Index height = Min(most, r.rows - row);
    t.c = pad.c + row * c_stride;
    if (in_place) {
      t.a = PairsAt(m.a, r.row + row, terms.first);
      MultiplyRow<false>(t, height, r.begin, r.end, pad.b);
    } else {
      t.a = pad.a + row / most * terms.pairs() * kTileStride;
      MultiplyRow<true>(t, height, r.begin, r.end, pad.b);
    }
  }
}

// Load and store at most kLanes elements.
inline Vec LoadSomeBF16(const std::uint16_t* from, Index count) {
  if (count >= kLanes) return LoadBF16(from);
  std::uint16_t some[kLanes] = {};
  std::copy_n(from, count, some);
  return LoadBF16(some);
}
inline void StoreSomeBF16(std::uint16_t* to, Vec v, Index count) {
  const __m256i bits = BitCast<__m256i>(_mm512_cvtneps_pbh(v));
  if (count >= kLanes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bits);
    return;
  }
  std::uint16_t some[kLanes];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(some), bits);
  std::copy_n(some, count, to);
}

// Adds the bias and the old value of C, and rounds, in rectangle `r` of C.
inline void Finish(const BF16Product& m, const Rectangle& r, const float* sums,
                   Index sums_stride) {
  for (Index i = 0; i < r.rows; ++i) {
    const float* from = sums + i * sums_stride;
    const Index row = (r.row + i) * m.c_stride;
    for (Index j = r.begin; j < r.end; j += kLanes, from += kLanes) {
      const Index count = r.end - j;
      Vec v = Load(from);
      if (m.wide_c != nullptr) {
        StoreSome(m.wide_c + row + j, v, First(count));
        continue;
      }
      std::uint16_t* const to = m.c + row + j;
      if (m.accumulate) v = Plus(LoadSomeBF16(to, count), v);
      if (m.bias != nullptr) v = Plus(LoadSomeBF16(m.bias + j, count), v);
      StoreSomeBF16(to, v, count);
    }
  }
}

// Finishes the block of C, which is computed transposed if `turned`.
inline void FinishBlock(const BF16Product& m, const Rectangle& r,
                        Index c_stride, bool turned,
                        const BF16Scratchpad& pad) {
  if (!turned) return Finish(m, r, pad.c, c_stride);
  const Index cols = r.end - r.begin;
  const Index stride = CeilDiv(r.rows, kLanes) * kLanes;
  TransposeMatrix(r.rows, cols, pad.c, c_stride, pad.turned, stride,
                  /*pad=*/true, nullptr);
  Finish(m, {r.begin, cols, r.row, r.row + r.rows}, pad.turned, stride);
}

// Whether to compute C's transpose, so that the larger operand is not packed.
inline bool IsTurned(const BF16Product& m) {
  return m.a.along_depth && m.b.along_depth && m.rows < m.cols;
}

inline Cut CutOf(const BF16Product& m) {
  const bool few_rows = m.rows <= 2 * kFlat.rows && !m.b.along_depth;
  return few_rows || m.depth <= 2 * kFlat.pairs ? kFlat : kSquare;
}

// Returns the number of rows from which on CutOf() does not depend on it.
inline Index BF16RowsMin(Index depth) {
  return depth <= 2 * kFlat.pairs ? 1 : 2 * kFlat.rows + 1;
}

inline void MultiplyBF16(const BF16Product& product, float* scratch) {
  const BF16Scratchpad pad(scratch);
  const bool turned = IsTurned(product);
  BF16Product m = product;
  if (turned) {
    std::swap(m.rows, m.cols);
    std::swap(m.a, m.b);
  }
  const Cut cut = CutOf(m);
  const bool one_block = m.depth <= 2 * cut.pairs;
  for (Index begin = 0; begin < m.cols; begin += cut.cols) {
    const Index end = Min(begin + cut.cols, m.cols);
    for (Index row = 0; row < m.rows; row += cut.rows) {
      const Rectangle r{row, Min(cut.rows, m.rows - row), begin, end};
      for (Index p = 0; p == 0 || p < m.depth; p += 2 * cut.pairs) {
        const Terms terms{p, Min(2 * cut.pairs, m.depth - p)};
        if (row == 0 || !one_block) {
          Pack(m.b, begin, end, terms, kPanelCols, kPanelCols, pad.rows, pad.b);
        }
        AddTerms(m, r, terms, cut.cols, pad);
      }
      FinishBlock(product, r, cut.cols, turned, pad);
    }
  }
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // defined(__AVX512BF16__)

#endif  // NN_KERNELS_CPU_BF16_PRODUCT_H_
