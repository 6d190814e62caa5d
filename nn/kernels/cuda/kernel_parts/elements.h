// Vectorized loads and stores of elements. A load widens several elements to
// the type that kernels compute in; a store rounds each number once.
//
//   template <int kCount>
//   __device__ void At(std::int64_t i) {
//     Numbers<float, kCount> v = Load<kCount>(x + i);
//     for (int k = 0; k < kCount; ++k) v.at[k] *= factor;
//     Store(v, y + i);
//   }
//
// Types of elements: float, double, __nv_bfloat16 and __half. double is
// computed in double, the other types in float. LoadPack() and StorePack() move
// elements of any type unchanged.

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_ELEMENTS_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_ELEMENTS_H_

#include <cstdint>
#include <cstring>

#include "base/cuda/launch.h"

namespace troupe::nn::cuda {

inline constexpr int kVectorBytes = 16;

// The type in which kernels compute with elements of type T.
template <typename T>
struct ComputeOf {
  using Type = float;
};
template <>
struct ComputeOf<double> {
  using Type = double;
};
template <typename T>
using Compute = typename ComputeOf<T>::Type;

__device__ __forceinline__ float Widen(float value) { return value; }
__device__ __forceinline__ double Widen(double value) { return value; }
__device__ __forceinline__ float Widen(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ __forceinline__ float Widen(__half value) {
  return __half2float(value);
}

// Rounds `value` to nearest, ties to even, into `element`.
__device__ __forceinline__ void Round(float value, float& element) {
  element = value;
}
__device__ __forceinline__ void Round(double value, float& element) {
  element = static_cast<float>(value);
}
__device__ __forceinline__ void Round(float value, double& element) {
  element = value;
}
__device__ __forceinline__ void Round(double value, double& element) {
  element = value;
}
__device__ __forceinline__ void Round(float value, __nv_bfloat16& element) {
  element = __float2bfloat16(value);
}
__device__ __forceinline__ void Round(double value, __nv_bfloat16& element) {
  element = __double2bfloat16(value);
}
__device__ __forceinline__ void Round(float value, __half& element) {
  element = __float2half_rn(value);
}
__device__ __forceinline__ void Round(double value, __half& element) {
  element = __double2half(value);
}

template <typename C, int kCount>
struct Numbers {
  C at[kCount];
};

// The unsigned type of one memory access of 1, 2, 4, 8 or 16 bytes.
template <int kBytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = unsigned char;
};
template <>
struct WordOf<2> {
  using Type = unsigned short;
};
template <>
struct WordOf<4> {
  using Type = unsigned;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};

// The memory accesses that move kCount adjacent elements of T.
template <typename T, int kCount>
struct WordsOf {
  static constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  static constexpr int kWordBytes =
      kBytes < kVectorBytes ? kBytes : kVectorBytes;
  static constexpr int kWords = kBytes / kWordBytes;
  using Word = typename WordOf<kWordBytes>::Type;
};

// kCount elements in their storage type.
template <typename T, int kCount>
struct Pack {
  T at[kCount];
};

// Loads kCount elements. The address must be a multiple of 16, or of the size
// of the kCount elements if that is smaller.
template <int kCount, typename T>
__device__ __forceinline__ Pack<T, kCount> LoadPack(const T* from) {
  using Words = WordsOf<T, kCount>;
  typename Words::Word words[Words::kWords];
#pragma unroll
  for (int i = 0; i < Words::kWords; ++i) {
    words[i] = reinterpret_cast<const typename Words::Word*>(from)[i];
  }
  Pack<T, kCount> pack;
  memcpy(&pack, words, sizeof(pack));
  return pack;
}

template <typename T, int kCount>
__device__ __forceinline__ void StorePack(const Pack<T, kCount>& pack, T* to) {
  using Words = WordsOf<T, kCount>;
  typename Words::Word words[Words::kWords];
  memcpy(words, &pack, sizeof(pack));
#pragma unroll
  for (int i = 0; i < Words::kWords; ++i) {
    reinterpret_cast<typename Words::Word*>(to)[i] = words[i];
  }
}

// Loads kCount elements and widens them to numbers.
template <int kCount, typename T>
__device__ __forceinline__ auto Load(const T* from) {
  const Pack<T, kCount> pack = LoadPack<kCount>(from);
  Numbers<decltype(Widen(T())), kCount> numbers;
#pragma unroll
  for (int k = 0; k < kCount; ++k) numbers.at[k] = Widen(pack.at[k]);
  return numbers;
}

template <typename C, int kCount, typename T>
__device__ __forceinline__ void Store(const Numbers<C, kCount>& numbers,
                                      T* to) {
  Pack<T, kCount> pack;
#pragma unroll
  for (int k = 0; k < kCount; ++k) Round(numbers.at[k], pack.at[k]);
  StorePack(pack, to);
}

// Number of elements of T in a vector of 16 bytes.
template <typename T>
inline constexpr int kVectorOf = kVectorBytes / static_cast<int>(sizeof(T));

// Returns whether `address` may be accessed 16 bytes at a time; true for null.
inline bool IsAligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kVectorBytes == 0;
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_ELEMENTS_H_
