// The register tile of every matrix product: a few rows times a few vectors of
// C, held in registers during the sum.
//
//     C[MR, NV * kLanes] = sum over p < depth of A(i, p) B(p, j)
//
// and, for convolutions, over several such segments (the rows of a filter).
// A is read one element at a time, B and C by vectors; the last vector may be
// part of one. An element of C is one chain of fma in ascending p, whatever
// the tile around it, so tiles may be cut anywhere without changing bits.

#ifndef NN_KERNELS_CPU_TILE_H_
#define NN_KERNELS_CPU_TILE_H_

#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

// Whether a tile overwrites C with its sums or adds them.
enum class Put { kStore, kAdd };

// Adds one term of an element's sum. bf16_product.h has another version, which
// takes 32 bits for two terms.
struct FloatTerm {
  TROUPE_INLINE static Vec Add(Vec a, Vec b, Vec sum) { return Fma(a, b, sum); }
};

struct TileCall {
  Index depth;
  Index segments;
  const float* a;
  // Packed: A(i, p) = a[p * a_stride + i]; rows: A(i, p) = a[i * a_stride + p].
  Index a_stride;
  Index a_segment;  // distance between segments
  const float* b;   // B(p, j) = b[p * b_stride + j]
  Index b_stride;
  Index b_segment;
  float* c;  // C(i, j) = c[i * c_stride + j]
  Index c_stride;
  Mask last;           // lanes of the last vector of C
  bool whole;          // B may be read beyond them
  const float* start;  // null, or one value per column added to the sums
  Put put;
};

// Odd multiples of the distance between rows of A. They are kept in registers,
// and the addressing mode scales them by 1, 2, 4 or 8.
struct OddStrides {
  Index bytes[7];  // 1, 3, 5 ... 13 times the stride
};

template <int kRow>
TROUPE_INLINE float RowElement(const float* a, const OddStrides& odd) {
  constexpr int kScale = kRow == 0 ? 0 : kRow & -kRow;  // 1, 2, 4 or 8
  constexpr int kOdd = kRow == 0 ? 1 : kRow / kScale;
  return *reinterpret_cast<const float*>(reinterpret_cast<const char*>(a) +
                                         odd.bytes[kOdd / 2] * kScale);
}

template <typename Term, int kRow, int MR, int NV, bool kPacked>
TROUPE_INLINE void TileRows(const float* a, const OddStrides& odd,
                            const Vec (&row)[NV], Vec (&sum)[MR][NV]) {
  if constexpr (kRow < MR) {
    const Vec element = Set(kPacked ? a[kRow] : RowElement<kRow>(a, odd));
    TROUPE_UNROLL
    for (int j = 0; j < NV; ++j) {
      sum[kRow][j] = Term::Add(element, row[j], sum[kRow][j]);
    }
    TileRows<Term, kRow + 1, MR, NV, kPacked>(a, odd, row, sum);
  }
}

template <int MR, int NV>
TROUPE_INLINE void PutTile(const TileCall& t, const Vec (&sum)[MR][NV]) {
  // Local copies: as far as the compiler can tell, C might overlap `t`.
  float* const c = t.c;
  const Index c_stride = t.c_stride;
  const float* const start = t.start;
  const bool adds = t.put == Put::kAdd;
  const Mask last = t.last;
  TROUPE_UNROLL
  for (int i = 0; i < MR; ++i) {
    TROUPE_UNROLL
    for (int j = 0; j < NV; ++j) {
      float* to = c + i * c_stride + j * kLanes;
      const Mask mask = j == NV - 1 ? last : First(kLanes);
      Vec v = sum[i][j];
      if (adds) v = Plus(LoadSome(to, mask), v);
      if (start) v = Plus(LoadSome(start + j * kLanes, mask), v);
      StoreSome(to, v, mask);
    }
  }
}

// kWhole: every lane of the last vector of B may be read. A masked load takes
// one of the two ports that fma runs on.
template <typename Term, int MR, int NV, bool kPacked, bool kWhole>
TROUPE_INLINE void SumTile(const TileCall& t, const OddStrides& odd,
                           Vec (&sum)[MR][NV]) {
  const Index a_stride = t.a_stride;
  const Index b_stride = t.b_stride;
  for (Index g = 0; g < t.segments; ++g) {
    const float* a = t.a + g * t.a_segment;
    const float* b = t.b + g * t.b_segment;
    for (Index p = t.depth; p > 0; --p) {
      Vec row[NV];
      TROUPE_UNROLL
      for (int j = 0; j < NV - 1; ++j) row[j] = Load(b + j * kLanes);
      const float* end = b + (NV - 1) * kLanes;
      row[NV - 1] = kWhole ? Load(end) : LoadSome(end, t.last);
      TileRows<Term, 0, MR, NV, kPacked>(a, odd, row, sum);
      a += kPacked ? a_stride : 1;
      b += b_stride;
    }
  }
}

template <typename Term, int MR, int NV, bool kPacked>
void Tile(const TileCall& t) {
  Vec sum[MR][NV];
  TROUPE_UNROLL
  for (int i = 0; i < MR; ++i) {
    TROUPE_UNROLL
    for (int j = 0; j < NV; ++j) sum[i][j] = Zero();
  }
  OddStrides odd;
  TROUPE_UNROLL
  for (int i = 0; i < 7; ++i) {
    odd.bytes[i] = (2 * i + 1) * t.a_stride * Index{sizeof(float)};
    // Otherwise the compiler keeps a pointer per row and runs out of registers.
    asm("" : "+r"(odd.bytes[i]));
  }
  if (t.whole) {
    SumTile<Term, MR, NV, kPacked, true>(t, odd, sum);
  } else {
    SumTile<Term, MR, NV, kPacked, false>(t, odd, sum);
  }
  PutTile<MR, NV>(t, sum);
}

// Tiles that fit the registers: NV vectors wide, at most MaxRows(NV) high.
#if defined(__AVX512F__)
constexpr int kTileVectors = 4;
constexpr int MaxRows(int nv) { return nv <= 2 ? 14 : nv == 3 ? 9 : 6; }
#else
constexpr int kTileVectors = 2;
constexpr int MaxRows(int nv) { return nv == 1 ? 12 : 6; }
#endif

using TileFn = void (*)(const TileCall&);

template <int NV, bool kPacked, typename Term = FloatTerm>
TileFn TileOfRows(Index rows) {
  constexpr int kMax = MaxRows(NV);
  switch (rows) {
    case 1:
      return Tile<Term, 1, NV, kPacked>;
    case 2:
      return Tile<Term, 2, NV, kPacked>;
    case 3:
      return Tile<Term, 3, NV, kPacked>;
    case 4:
      return Tile<Term, 4, NV, kPacked>;
    case 5:
      return Tile<Term, 5, NV, kPacked>;
    case 6:
      return Tile<Term, 6, NV, kPacked>;
    case 7:
      return Tile<Term, Min(7, kMax), NV, kPacked>;
    case 8:
      return Tile<Term, Min(8, kMax), NV, kPacked>;
    case 9:
      return Tile<Term, Min(9, kMax), NV, kPacked>;
    case 10:
      return Tile<Term, Min(10, kMax), NV, kPacked>;
    case 11:
      return Tile<Term, Min(11, kMax), NV, kPacked>;
    case 12:
      return Tile<Term, Min(12, kMax), NV, kPacked>;
    case 13:
      return Tile<Term, Min(13, kMax), NV, kPacked>;
    default:
      return Tile<Term, Min(14, kMax), NV, kPacked>;
  }
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_TILE_H_
