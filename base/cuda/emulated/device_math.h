// CUDA's intrinsics that involve no other thread: rounding arithmetic, bits,
// loads and stores with cache hints, fences, atomics. Included by
// device_code.h.
//
//   const float y = __fadd_rn(__fmul_rn(a, x), b);
//   const int before = atomicAdd(&counter, 1);
//
// Functions named _rn round once, to nearest even, as on a GPU. The fast ones
// (__expf, rsqrtf) are the host's exact ones: a GPU differs in the last bits.
// Atomics are atomics of the host, so that ThreadSanitizer recognizes them;
// they order nothing. Fences are empty: weak memory order is not emulated.
//
// Compiled with -ffp-contract=off: nothing is fused but fmaf and fma.

#ifndef BASE_CUDA_EMULATED_DEVICE_MATH_H_
#define BASE_CUDA_EMULATED_DEVICE_MATH_H_

#include <cuda_runtime_api.h>
#include <math.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace emulated_cuda {

template <typename To, typename From>
To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// Replaces *p by next_of(*p) atomically and returns the old value.
template <typename T, typename Next>
T AtomicUpdate(T* p, Next next_of) {
  T old;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  T next = next_of(old);
  while (!__atomic_compare_exchange(p, &old, &next, /*weak=*/true,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    next = next_of(old);
  }
  return old;
}

// T, in a parameter that is not used to deduce it.
template <typename T>
using Same = typename std::common_type<T>::type;

}  // namespace emulated_cuda

// Floating point. math.h has expf, sqrtf, fmaf, fmaxf, erff, tanhf, ...

extern "C" {
// glibc declares these names but does not define them.
inline float __expf(float x) noexcept { return expf(x); }
inline float __logf(float x) noexcept { return logf(x); }
inline float __log2f(float x) noexcept { return log2f(x); }
inline float __powf(float x, float y) noexcept { return powf(x, y); }
inline float __sinf(float x) noexcept { return sinf(x); }
inline float __cosf(float x) noexcept { return cosf(x); }
}

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }

inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }

inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

// Conversions. Values out of range saturate and a NaN becomes 0, as on a GPU.

namespace emulated_cuda {

template <typename Integer>
Integer Saturated(double x) {
  using Limits = std::numeric_limits<Integer>;
  if (x != x) return 0;
  if (x <= static_cast<double>(Limits::min())) return Limits::min();
  if (x >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<Integer>(x);
}

}  // namespace emulated_cuda

inline int __float2int_rn(float x) {
  return emulated_cuda::Saturated<int>(nearbyintf(x));
}
inline int __float2int_rz(float x) { return emulated_cuda::Saturated<int>(x); }
inline long long __double2ll_rn(double x) {
  return emulated_cuda::Saturated<long long>(nearbyint(x));
}
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }

inline int __float_as_int(float x) { return emulated_cuda::BitCast<int>(x); }
inline unsigned __float_as_uint(float x) {
  return emulated_cuda::BitCast<unsigned>(x);
}
inline float __int_as_float(int x) { return emulated_cuda::BitCast<float>(x); }
inline float __uint_as_float(unsigned x) {
  return emulated_cuda::BitCast<float>(x);
}
inline long long __double_as_longlong(double x) {
  return emulated_cuda::BitCast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return emulated_cuda::BitCast<double>(x);
}

// Integers.

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>((std::uint64_t{x} * y) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long x,
                                     unsigned long long y) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((Wide{x} * y) >> 64);
}
// For two values of one type. For floats use fminf and fmaxf, whose rule for
// NaN differs.
using std::max;
using std::min;

// Memory.

inline void __threadfence_block() { asm volatile("" ::: "memory"); }
inline void __threadfence() { asm volatile("" ::: "memory"); }
inline void __threadfence_system() { asm volatile("" ::: "memory"); }

#define EMULATED_CUDA_LOAD(name) \
  template <typename T>          \
  T name(const T* p) {           \
    return *p;                   \
  }
EMULATED_CUDA_LOAD(__ldg)
EMULATED_CUDA_LOAD(__ldca)
EMULATED_CUDA_LOAD(__ldcg)
EMULATED_CUDA_LOAD(__ldcs)
EMULATED_CUDA_LOAD(__ldlu)
#undef EMULATED_CUDA_LOAD

#define EMULATED_CUDA_STORE(name)             \
  template <typename T>                       \
  void name(T* p, emulated_cuda::Same<T> v) { \
    *p = v;                                   \
  }
EMULATED_CUDA_STORE(__stcg)
EMULATED_CUDA_STORE(__stcs)
EMULATED_CUDA_STORE(__stwb)
EMULATED_CUDA_STORE(__stwt)
#undef EMULATED_CUDA_STORE

// Atomics: each returns the old value.

#define EMULATED_CUDA_ATOMIC(name, next)                 \
  template <typename T>                                  \
  T name(T* p, emulated_cuda::Same<T> v) {               \
    return emulated_cuda::AtomicUpdate(                  \
        p, [v](T old) { return static_cast<T>(next); }); \
  }
EMULATED_CUDA_ATOMIC(atomicAdd, old + v)
EMULATED_CUDA_ATOMIC(atomicSub, old - v)
EMULATED_CUDA_ATOMIC(atomicMin, old < v ? old : v)
EMULATED_CUDA_ATOMIC(atomicMax, old > v ? old : v)
EMULATED_CUDA_ATOMIC(atomicAnd, old& v)
EMULATED_CUDA_ATOMIC(atomicOr, old | v)
EMULATED_CUDA_ATOMIC(atomicXor, old ^ v)
EMULATED_CUDA_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
#undef EMULATED_CUDA_ATOMIC

template <typename T>
T atomicExch(T* p, emulated_cuda::Same<T> v) {
  return emulated_cuda::AtomicUpdate(p, [v](T) { return v; });
}
template <typename T>
T atomicCAS(T* p, emulated_cuda::Same<T> expected, emulated_cuda::Same<T> v) {
  return emulated_cuda::AtomicUpdate(
      p, [=](T old) { return old == expected ? v : old; });
}

#endif  // BASE_CUDA_EMULATED_DEVICE_MATH_H_
