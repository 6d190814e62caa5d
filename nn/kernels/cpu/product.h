// Matrix products of any size, cut into the register tiles of tile.h.
//
//   Product p;
//   p.rows = n, p.cols = m, p.depth = k;
//   Multiply</*kPacked=*/false>(p);

#ifndef NN_KERNELS_CPU_PRODUCT_H_
#define NN_KERNELS_CPU_PRODUCT_H_

#include <type_traits>

#include "nn/kernels/cpu/tile.h"

namespace troupe::nn::cpu {
namespace {

// Number of terms of one fma chain; longer sums are sums of chains. Bounds both
// the rounding error and the part of B that a row of tiles reads.
constexpr Index kDepth = 256;

// Rounds a count of floats up to whole vectors.
constexpr Index Padded(Index n) { return CeilDiv(n, kLanes) * kLanes; }

// Number of floats of B that stay in the second-level cache while tiles read
// them.
constexpr Index kBlock = Index{1} << 17;
constexpr Index kPanel = kTileVectors * kLanes;  // columns of a tile
// Number of rows of tiles from which on C is written row by row, and a copy of
// the data that they read repeatedly costs little beside reading it.
constexpr Index kManyTiles = 24;
// Number of rows of an operand that may share a few sets of the caches, if
// their distance is a multiple of a power of two.
constexpr Index kManyTerms = 128;
// Distance between terms in a copy of rows of A.
constexpr Index kCopiedRows = CeilDiv(MaxRows(kTileVectors), 8) * 8;

struct Product {
  Index rows, cols, depth;
  const float* a;
  Index a_stride;  // these are the same as in TileCall
  const float* b;
  Index b_stride;
  float* c;
  Index c_stride;
  const float* start = nullptr;  // [cols], added once
  bool accumulate = false;
  Index segments = 1;
  Index a_segment = 0, b_segment = 0;
  // [ProductScratch(rows, cols)], or null: operands are read in place.
  float* scratch = nullptr;
};

constexpr bool IsTall(Index rows, Index cols) {
  return rows >= kManyTiles * MaxRows(kTileVectors) && cols > kPanel;
}

// Returns the floats of scratch memory; 0: none needed.
constexpr Index ProductScratch(Index rows, Index cols) {
  return IsTall(rows, cols) ? kBlock + kDepth * kCopiedRows : 0;
}

// Division of the rows of C into tiles of nearly equal height.
struct RowCut {
  RowCut(Index rows, Index most)
      : tiles(CeilDiv(rows, most)),
        height(rows / tiles),
        taller(rows - height * tiles) {}
  Index Begin(Index tile) const { return tile * height + Min(tile, taller); }
  Index Height(Index tile) const { return height + (tile < taller ? 1 : 0); }

  Index tiles;
  Index height;
  Index taller;  // number of tiles, the first ones, with one more row
};

// Operands of tiles: terms [first, first + depth) of the sum, and of them
// columns [col, ...) of B and some rows of A.
struct Operands {
  Index first, depth;
  Index col;
  const float* b;
  Index b_stride;
  bool whole;              // B is padded to whole vectors
  const float* copy_of_a;  // null, or the rows of the only tile
};

// Computes tiles [begin, end) of a panel.
template <int NV, bool kPacked>
void MultiplyPanel(const Product& m, const Operands& from, const RowCut& rows,
                   Index begin, Index end) {
  const Index cols = Min(m.cols - from.col, NV * kLanes);
  TileCall t;
  t.depth = from.depth;
  t.segments = m.segments;
  t.a_stride = from.copy_of_a ? kCopiedRows : m.a_stride;
  t.a_segment = m.a_segment;
  t.b = from.b;
  t.b_stride = from.b_stride;
  t.b_segment = m.b_segment;
  t.c_stride = m.c_stride;
  t.last = First(cols - (NV - 1) * kLanes);
  t.whole = from.whole || cols == NV * kLanes;
  t.start = from.first == 0 && m.start ? m.start + from.col : nullptr;
  t.put = from.first > 0 || m.accumulate ? Put::kAdd : Put::kStore;
  for (Index tile = begin; tile < end; ++tile) {
    const Index row = rows.Begin(tile);
    t.a = from.copy_of_a ? from.copy_of_a
          : kPacked      ? m.a + from.first * m.a_stride + row
                         : m.a + row * m.a_stride + from.first;
    t.c = m.c + row * m.c_stride + from.col;
    TileOfRows<NV, kPacked>(rows.Height(tile))(t);
  }
}

// Calls run(integral_constant NV) with the number of vectors of the panel at
// `col`.
template <typename Run>
void WithVectors(const Product& m, Index col, const Run& run) {
  switch (Min(CeilDiv(m.cols - col, kLanes), kTileVectors)) {
    case 1:
      return run(std::integral_constant<int, 1>());
    case 2:
      return run(std::integral_constant<int, 2>());
#if defined(__AVX512F__)
    case 3:
      return run(std::integral_constant<int, 3>());
    default:
      return run(std::integral_constant<int, 4>());
#endif
  }
}

// Goes panel by panel: B is read once, and stays in the nearest caches
// meanwhile.
template <bool kPacked>
void MultiplyWide(const Product& m, Index first, Index depth) {
  for (Index col = 0; col < m.cols; col += kPanel) {
    const Operands from{
        first,      depth, col,    m.b + first * m.b_stride + col,
        m.b_stride, false, nullptr};
    WithVectors(m, col, [&](auto nv) {
      const RowCut rows(m.rows, MaxRows(nv));
      MultiplyPanel<nv, kPacked>(m, from, rows, 0, rows.tiles);
    });
  }
}

// Copies panels of columns [begin, end) one after another, padded to whole
// vectors.
inline void CopyBlock(const Product& m, Index first, Index depth, Index begin,
                      Index end, float* to) {
  for (Index col = begin; col < end; col += kPanel) {
    const Index cols = Min(kPanel, end - col);
    for (Index p = 0; p < depth; ++p) {
      const float* row = m.b + (first + p) * m.b_stride + col;
      for (Index j = 0; j < cols; j += kLanes, to += kLanes) {
        Store(to, LoadSome(row + j, First(cols - j)));
      }
    }
  }
}

// Copies rows [row, row + height) of A, which is stored column by column.
inline void CopyRows(const Product& m, Index first, Index depth, Index row,
                     Index height, float* to) {
  const float* a = m.a + first * m.a_stride + row;
  for (Index p = 0; p < depth; ++p, a += m.a_stride, to += kCopiedRows) {
    for (Index i = 0; i < height; i += kLanes) {
      StoreSome(to + i, LoadSome(a + i, First(height - i)), First(height - i));
    }
  }
}

// Goes through a block of B by rows of tiles, so that C is written in long
// runs: a gradient of many megabytes then costs only the time to write it (72
// GFLOP/s became 145 for 64 x 2236 to 2236).
template <bool kPacked>
void MultiplyTall(const Product& m, Index first, Index depth) {
  const RowCut rows(m.rows, MaxRows(kTileVectors));
  const Index block = Max(kBlock / Max(depth, 1) / kPanel, 1) * kPanel;
  const bool copies = depth >= kManyTerms || m.b_stride % kLanes != 0;
  float* const copied_rows = m.scratch + kBlock;
  for (Index begin = 0; begin < m.cols; begin += block) {
    const Index end = Min(begin + block, m.cols);
    if (copies) CopyBlock(m, first, depth, begin, end, m.scratch);
    for (Index tile = 0; tile < rows.tiles; ++tile) {
      Operands from{};
      from.first = first;
      from.depth = depth;
      from.whole = copies;
      if (kPacked && depth >= kManyTerms) {
        CopyRows(m, first, depth, rows.Begin(tile), rows.Height(tile),
                 copied_rows);
        from.copy_of_a = copied_rows;
      }
      for (from.col = begin; from.col < end; from.col += kPanel) {
        from.b = copies ? m.scratch + (from.col - begin) * depth
                        : m.b + first * m.b_stride + from.col;
        from.b_stride =
            copies ? Padded(Min(kPanel, end - from.col)) : m.b_stride;
        WithVectors(m, from.col, [&](auto nv) {
          MultiplyPanel<nv, kPacked>(m, from, rows, tile, tile + 1);
        });
      }
    }
  }
}

// C[rows, cols] (+)= A B, summed over depth and segments.
template <bool kPacked>
void Multiply(const Product& m) {
  if (m.rows == 0) return;  // an empty batch: there are no tiles to cut
  const bool tall = m.scratch && m.segments == 1 && IsTall(m.rows, m.cols);
  for (Index first = 0; first == 0 || first < m.depth; first += kDepth) {
    const Index depth = Min(kDepth, m.depth - first);
    if (tall) {
      MultiplyTall<kPacked>(m, first, depth);
    } else {
      MultiplyWide<kPacked>(m, first, depth);
    }
  }
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_PRODUCT_H_
