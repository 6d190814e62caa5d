// Matrix products of any size, cut into the register tiles of tile.h.
//
//   Product p;
//   p.rows = n; p.cols = m; p.depth = k; ...
//   Multiply</*kPacked=*/false>(p);

#ifndef NN_KERNELS_CPU_PRODUCT_H_
#define NN_KERNELS_CPU_PRODUCT_H_

#include "nn/kernels/cpu/tile.h"

namespace troupe::nn::cpu {
namespace {

// Terms of one fma chain; longer sums are sums of such chains. Bounds both the
// rounding error and the part of B that a row of tiles goes through.
constexpr Index kDepth = 512;

// A count of floats, rounded up to whole vectors.
constexpr Index Padded(Index n) { return CeilDiv(n, kLanes) * kLanes; }

struct Product {
  Index rows, cols, depth;
  const float* a;
  Index a_stride;  // these as in TileCall
  const float* b;
  Index b_stride;
  float* c;
  Index c_stride;
  const float* start = nullptr;  // [cols], added once
  bool accumulate = false;
  Index segments = 1;
  Index a_segment = 0, b_segment = 0;
};

// One block of columns: rows of tiles, cut as evenly as may be.
template <int NV, bool kPacked>
void MultiplyPanel(const Product& m, Index col, Index cols, Index p0,
                   Index depth) {
  const Index tiles = CeilDiv(m.rows, MaxRows(NV));
  const Index height = m.rows / tiles;
  const Index taller = m.rows - height * tiles;  // so many have one row more
  TileCall t;
  t.depth = depth;
  t.segments = m.segments;
  t.a_stride = m.a_stride;
  t.a_segment = m.a_segment;
  t.b = m.b + p0 * m.b_stride + col;
  t.b_stride = m.b_stride;
  t.b_segment = m.b_segment;
  t.c_stride = m.c_stride;
  t.last = First(cols - (NV - 1) * kLanes);
  t.start = p0 == 0 && m.start ? m.start + col : nullptr;
  t.put = p0 > 0 || m.accumulate ? Put::kAdd : Put::kStore;
  Index row = 0;
  for (Index tile = 0; tile < tiles; ++tile) {
    const Index rows = height + (tile < taller ? 1 : 0);
    t.a = kPacked ? m.a + p0 * m.a_stride + row : m.a + row * m.a_stride + p0;
    t.c = m.c + row * m.c_stride + col;
    TileOfRows<NV, kPacked>(rows)(t);
    row += rows;
  }
}

// C[rows, cols] (+)= A B, summed over depth and segments.
template <bool kPacked>
void Multiply(const Product& m) {
  if (m.rows == 0) return;  // an empty batch: there are no tiles to cut
  const Index vectors = CeilDiv(m.cols, kLanes);
  for (Index p0 = 0; p0 == 0 || p0 < m.depth; p0 += kDepth) {
    const Index depth = Min(kDepth, m.depth - p0);
    for (Index v = 0; v < vectors; v += kTileVectors) {
      const Index col = v * kLanes;
      const Index cols = Min(m.cols - col, kTileVectors * kLanes);
      switch (Min(vectors - v, kTileVectors)) {
        case 1:
          MultiplyPanel<1, kPacked>(m, col, cols, p0, depth);
          break;
        case 2:
          MultiplyPanel<2, kPacked>(m, col, cols, p0, depth);
          break;
#if defined(__AVX512F__)
        case 3:
          MultiplyPanel<3, kPacked>(m, col, cols, p0, depth);
          break;
        default:
          MultiplyPanel<4, kPacked>(m, col, cols, p0, depth);
          break;
#endif
      }
    }
  }
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_PRODUCT_H_
