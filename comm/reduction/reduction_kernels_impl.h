// The code of the kernels (reduction_kernels.h): included by one file for each
// instruction set, which is built with that set's compiler flags.
//
//   #define TROUPE_KERNELS KernelsAvx2       // the name of this set's table
//   #include "comm/reduction/reduction_kernels_impl.h"
//
// Everything is in an unnamed namespace and calls nothing of the standard
// library: the linker might otherwise keep the AVX-512 form of an inline
// function for the whole program.

#ifndef COMM_REDUCTION_REDUCTION_KERNELS_IMPL_H_
#define COMM_REDUCTION_REDUCTION_KERNELS_IMPL_H_

#include <cstddef>
#include <cstdint>

#include "base/simd/half.h"
#include "base/simd/vector.h"
#include "comm/reduction/reduction_kernels.h"

#ifndef TROUPE_KERNELS
#define TROUPE_KERNELS KernelsPlain
#endif

namespace troupe::comm::internal {
namespace {

using base::simd::BitCast;
using base::simd::kVectorBytes;
using base::simd::LoadBytes;
using base::simd::StoreBytes;
using base::simd::Vector;

// A format defines how elements lie in memory and which vectors compute with
// them: V Load(), Store(), Round() to the elements' precision at a node, and
// Canonical() at the root. kStep elements fill one V.

template <typename T>
struct Direct {
  using Scalar = T;
  using V = Vector<T>;
  static constexpr int kElementBytes = sizeof(T);
  static constexpr int kStep = kVectorBytes / sizeof(T);
  static TROUPE_INLINE V Load(const char* from) { return LoadBytes<V>(from); }
  static TROUPE_INLINE void Store(char* to, V v) { StoreBytes(to, v); }
  static TROUPE_INLINE V Round(V v) { return v; }
};

template <typename T>
struct Float : Direct<T> {
  using V = Vector<T>;
  static TROUPE_INLINE V Canonical(V v) {
    const V nan = V{} + static_cast<T>(__builtin_nan(""));
    return v == v ? v : nan;
  }
};

template <typename T>
struct Integer : Direct<T> {
  using V = Vector<T>;
  static TROUPE_INLINE V Canonical(V v) { return v; }
};

// 16-bit floats are widened to f32 when loaded; a node's result is then rounded
// in place, in the f32 vector.
struct Half {
  using Scalar = float;
  using V = Vector<float>;
  static constexpr int kElementBytes = 2;
  static constexpr int kStep = kVectorBytes / 4;
  static TROUPE_INLINE V Canonical(V v) { return Float<float>::Canonical(v); }
};

struct BFloat16 : Half {
  static TROUPE_INLINE V Load(const char* from) {
    return base::simd::LoadBF16(from);
  }
  static TROUPE_INLINE void Store(char* to, V v) {
    base::simd::StoreRoundedBF16(to, v);
  }
  static TROUPE_INLINE V Round(V v) { return base::simd::RoundToBF16(v); }
};

struct Float16 : Half {
  static TROUPE_INLINE V Load(const char* from) {
    return base::simd::LoadF16(from);
  }
  static TROUPE_INLINE void Store(char* to, V v) {
    base::simd::StoreF16(to, v);
  }
  static TROUPE_INLINE V Round(V v) { return base::simd::RoundToF16(v); }
};

// Sums and products of signed integers wrap around: they are computed as
// unsigned.
template <typename V>
struct WrappingOf {
  using type = V;
};
template <>
struct WrappingOf<Vector<std::int32_t>> {
  using type = Vector<std::uint32_t>;
};
template <>
struct WrappingOf<Vector<std::int64_t>> {
  using type = Vector<std::uint64_t>;
};

struct Sum {
  template <typename V>
  static TROUPE_INLINE V Apply(V a, V b) {
    using W = typename WrappingOf<V>::type;
    return BitCast<V>(BitCast<W>(a) + BitCast<W>(b));
  }
};
struct Product {
  template <typename V>
  static TROUPE_INLINE V Apply(V a, V b) {
    using W = typename WrappingOf<V>::type;
    return BitCast<V>(BitCast<W>(a) * BitCast<W>(b));
  }
};
// Returns the left operand if they are equal (so -0 and 0 keep their order),
// and a NaN if there is one.
struct Min {
  template <typename V>
  static TROUPE_INLINE V Apply(V a, V b) {
    const V least = b < a ? b : a;
    return b == b ? least : b;
  }
};
struct Max {
  template <typename V>
  static TROUPE_INLINE V Apply(V a, V b) {
    const V most = b > a ? b : a;
    return b == b ? most : b;
  }
};

// Bitwise operations are for integers only.
struct Band {
  template <typename V>
  static TROUPE_INLINE V Apply(V a, V b) {
    return a & b;
  }
};
struct Bor {
  template <typename V>
  static TROUPE_INLINE V Apply(V a, V b) {
    return a | b;
  }
};
struct Bxor {
  template <typename V>
  static TROUPE_INLINE V Apply(V a, V b) {
    return a ^ b;
  }
};

// Another core has often read the destination before: the result of the last
// collective, or the input that it replaces. A store then waits until that
// core's copy of the cache line is gone, unless the line was prefetched for
// writing, this number of bytes ahead. It makes such a sum twice as fast.
constexpr std::size_t kPrefetchBytes = 1024;
constexpr std::size_t kCacheLineBytes = 64;

constexpr int Split(int n) {
  int p = 1;
  while (2 * p < n) p *= 2;
  return p;
}

// Computes the tree over sources first .. first + kN, at byte `at` of each.
template <typename Format, typename Op, int kN>
struct Tree {
  using V = typename Format::V;
  static TROUPE_INLINE V At(const char* const* sources, std::size_t at) {
    constexpr int kLeft = Split(kN);
    const V left = Tree<Format, Op, kLeft>::At(sources, at);
    const V right = Tree<Format, Op, kN - kLeft>::At(sources + kLeft, at);
    return Format::Round(Op::Apply(left, right));
  }
};
template <typename Format, typename Op>
struct Tree<Format, Op, 1> {
  static TROUPE_INLINE typename Format::V At(const char* const* sources,
                                             std::size_t at) {
    return Format::Load(sources[0] + at);
  }
};

// Finishes a result at the root, and leaves that of an inner node unchanged. An
// average is divided (if by a power of two: multiplied by its inverse, which is
// exact, and quicker), and NaN gets its one form.
template <typename Format, bool kAverage>
struct Root {
  using V = typename Format::V;
  using Scalar = typename Format::Scalar;

  explicit Root(int ranks)
      : is_root(ranks > 0),
        exact((ranks & (ranks - 1)) == 0),
        divisor(static_cast<Scalar>(ranks > 0 ? ranks : 1)),
        factor(static_cast<Scalar>(1) / divisor) {}

  TROUPE_INLINE V operator()(V v) const {
    if (!is_root) return v;
    if constexpr (kAverage) {
      constexpr bool kFloating = static_cast<Scalar>(0.5) != 0;
      v = Format::Round(kFloating && exact ? v * factor : v / divisor);
    }
    return Format::Canonical(v);
  }

  const bool is_root;
  const bool exact;
  const Scalar divisor;
  const Scalar factor;
};

template <typename Format, typename Op, bool kAverage, int kN>
void Run(const char* const* sources, char* const* destinations, int m,
         std::size_t count, int ranks) {
  using V = typename Format::V;
  constexpr int kUnroll = kN <= 4 ? 4 : 2;
  constexpr std::size_t kStepBytes = Format::kStep * Format::kElementBytes;
  const Root<Format, kAverage> root(ranks);
  // The pointers are copied, since the compiler must assume that a store may
  // change those in memory.
  const char* from[kN];
  for (int i = 0; i < kN; ++i) from[i] = sources[i];
  const std::size_t bytes = count * Format::kElementBytes;
  std::size_t at = 0;
  constexpr std::size_t kTurnBytes = kUnroll * kStepBytes;
  for (; at + kTurnBytes <= bytes; at += kTurnBytes) {
    const bool prefetches = at + kPrefetchBytes + kTurnBytes <= bytes;
    V v[kUnroll];
    for (int u = 0; u < kUnroll; ++u) {
      v[u] = root(Tree<Format, Op, kN>::At(from, at + u * kStepBytes));
    }
    for (int j = 0; j < m; ++j) {
      char* const to = destinations[j] + at;
      if (prefetches) {
        for (std::size_t k = 0; k < kTurnBytes; k += kCacheLineBytes) {
          __builtin_prefetch(to + kPrefetchBytes + k, /*write=*/1);
        }
      }
      for (int u = 0; u < kUnroll; ++u) {
        Format::Store(to + u * kStepBytes, v[u]);
      }
    }
  }
  for (; at + kStepBytes <= bytes; at += kStepBytes) {
    const V v = root(Tree<Format, Op, kN>::At(from, at));
    for (int j = 0; j < m; ++j) Format::Store(destinations[j] + at, v);
  }
  if (at == bytes) return;
  char padded[kN][kStepBytes] = {};
  for (int i = 0; i < kN; ++i) {
    __builtin_memcpy(padded[i], from[i] + at, bytes - at);
    from[i] = padded[i];
  }
  char result[kStepBytes];
  Format::Store(result, root(Tree<Format, Op, kN>::At(from, 0)));
  for (int j = 0; j < m; ++j) {
    __builtin_memcpy(destinations[j] + at, result, bytes - at);
  }
}

template <typename Format, typename Op, bool kAverage = false>
void Kernel(const char* const* s, int n, char* const* d, int m,
            std::size_t count, int ranks) {
  switch (n) {
    case 1:
      return Run<Format, Op, kAverage, 1>(s, d, m, count, ranks);
    case 2:
      return Run<Format, Op, kAverage, 2>(s, d, m, count, ranks);
    case 3:
      return Run<Format, Op, kAverage, 3>(s, d, m, count, ranks);
    case 4:
      return Run<Format, Op, kAverage, 4>(s, d, m, count, ranks);
    case 5:
      return Run<Format, Op, kAverage, 5>(s, d, m, count, ranks);
    case 6:
      return Run<Format, Op, kAverage, 6>(s, d, m, count, ranks);
    case 7:
      return Run<Format, Op, kAverage, 7>(s, d, m, count, ranks);
    default:
      return Run<Format, Op, kAverage, 8>(s, d, m, count, ranks);
  }
}

using F32 = Float<float>;
using F64 = Float<double>;
using I32 = Integer<std::int32_t>;
using I64 = Integer<std::int64_t>;
using U8 = Integer<std::uint8_t>;

constexpr KernelTable kTable = {{
    {Kernel<F32, Sum>, Kernel<F64, Sum>, Kernel<BFloat16, Sum>,
     Kernel<Float16, Sum>, Kernel<I32, Sum>, Kernel<I64, Sum>, Kernel<U8, Sum>},
    {Kernel<F32, Sum, true>, Kernel<F64, Sum, true>,
     Kernel<BFloat16, Sum, true>, Kernel<Float16, Sum, true>,
     Kernel<I32, Sum, true>, Kernel<I64, Sum, true>, nullptr},
    {Kernel<F32, Min>, Kernel<F64, Min>, Kernel<BFloat16, Min>,
     Kernel<Float16, Min>, Kernel<I32, Min>, Kernel<I64, Min>, Kernel<U8, Min>},
    {Kernel<F32, Max>, Kernel<F64, Max>, Kernel<BFloat16, Max>,
     Kernel<Float16, Max>, Kernel<I32, Max>, Kernel<I64, Max>, Kernel<U8, Max>},
    {Kernel<F32, Product>, Kernel<F64, Product>, Kernel<BFloat16, Product>,
     Kernel<Float16, Product>, Kernel<I32, Product>, Kernel<I64, Product>,
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, Kernel<I32, Band>, Kernel<I64, Band>,
     Kernel<U8, Band>},
    {nullptr, nullptr, nullptr, nullptr, Kernel<I32, Bor>, Kernel<I64, Bor>,
     Kernel<U8, Bor>},
    {nullptr, nullptr, nullptr, nullptr, Kernel<I32, Bxor>, Kernel<I64, Bxor>,
     Kernel<U8, Bxor>},
}};

}  // namespace

const KernelTable& TROUPE_KERNELS() { return kTable; }

}  // namespace troupe::comm::internal

#undef TROUPE_KERNELS

#endif  // COMM_REDUCTION_REDUCTION_KERNELS_IMPL_H_
