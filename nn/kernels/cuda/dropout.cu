#include <algorithm>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/philox_words.h"

namespace troupe::nn::cuda {
namespace {

constexpr int kDrawsOfBlock = 4;

struct Mask {
  DeviceDraws draws;
  unsigned drop_below;
  float scale;
  std::int64_t first, row, stride;  // see DropoutMask

  // DropoutMask::DrawOf()
  __device__ __forceinline__ std::int64_t DrawOf(std::int64_t e) const {
    return first + (row == 0 ? e : e / row * stride + e % row);
  }
  __device__ __forceinline__ float Of(unsigned draw, float value) const {
    return draw >= drop_below ? value * scale : 0.0f;
  }
  // Applies the mask to the number of one draw.
  __device__ __forceinline__ void ApplyOne(std::int64_t sample,
                                           std::int64_t draw, float& v) const {
    const uint4 words = draws.Block(sample, draw / kDrawsOfBlock);
    const unsigned of_block[kDrawsOfBlock] = {words.x, words.y, words.z,
                                              words.w};
    v = Of(of_block[draw % kDrawsOfBlock], v);
  }
  // Applies the mask to the four numbers of draws 4 * block to 4 * block + 3.
  __device__ __forceinline__ void Apply(std::int64_t sample, std::int64_t block,
                                        float* v) const {
    const uint4 words = draws.Block(sample, block);
    v[0] = Of(words.x, v[0]);
    v[1] = Of(words.y, v[1]);
    v[2] = Of(words.z, v[2]);
    v[3] = Of(words.w, v[3]);
  }
};

// Handles kVector elements at a time. The elements of a sample, and those of a
// row of the mask, are a multiple, and each row begins with a block of draws.
template <int kVector, typename T>
__global__ void __launch_bounds__(kElementThreads)
    DropVectorsKernel(std::int64_t samples, std::int64_t elems, Mask mask,
                      const T* x, T* y) {
  mask.draws = mask.draws.Now();
  for (std::int64_t n = blockIdx.y; n < samples; n += gridDim.y) {
    for (std::int64_t v = ThreadOfGrid(); v < elems / kVector;
         v += ThreadsOfGrid()) {
      const std::int64_t at = n * elems + v * kVector;
      Numbers<float, kVector> numbers = Load<kVector>(x + at);
#pragma unroll
      for (int k = 0; k < kVector; k += kDrawsOfBlock) {
        mask.Apply(n, mask.DrawOf(v * kVector + k) / kDrawsOfBlock,
                   numbers.at + k);
      }
      Store(numbers, y + at);
    }
  }
}

// Handles any shape: a thread computes four elements, in one block of draws
// unless the mask has rows, or begins within a block.
template <typename T>
__global__ void __launch_bounds__(kElementThreads)
    DropKernel(std::int64_t samples, std::int64_t elems, Mask mask, const T* x,
               T* y) {
  mask.draws = mask.draws.Now();
  for (std::int64_t n = blockIdx.y; n < samples; n += gridDim.y) {
    for (std::int64_t b = ThreadOfGrid(); b * kDrawsOfBlock < elems;
         b += ThreadsOfGrid()) {
      const std::int64_t first = b * kDrawsOfBlock;
      const std::int64_t at = n * elems + first;
      const int count = static_cast<int>(
          elems - first < kDrawsOfBlock ? elems - first : kDrawsOfBlock);
      float v[kDrawsOfBlock] = {};
      for (int k = 0; k < count; ++k) v[k] = Widen(x[at + k]);
      if (mask.row == 0 && mask.first % kDrawsOfBlock == 0) {
        mask.Apply(n, mask.first / kDrawsOfBlock + b, v);
      } else {
        for (int k = 0; k < count; ++k) {
          mask.ApplyOne(n, mask.DrawOf(first + k), v[k]);
        }
      }
      for (int k = 0; k < count; ++k) Round(v[k], y[at + k]);
    }
  }
}

struct Dropout {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const DropoutMask& mask, In x,
                          Tensor& y) {
    if (x.numel() == 0) return absl::OkStatus();
    const std::int64_t samples = x.dim(0), elems = x.numel() / samples;
    const Mask drop{
        DeviceDraws(mask.draws, DataOrNull<std::int32_t>(mask.place)),
        mask.drop_below,
        static_cast<float>(mask.scale),
        mask.first,
        mask.row,
        mask.stride};
    constexpr int kVector = kVectorOf<T>;
    static_assert(kVector % kDrawsOfBlock == 0, "a vector has whole blocks");
    const bool whole_blocks = mask.first % kDrawsOfBlock == 0 &&
                              mask.row % kVector == 0 &&
                              mask.stride % kDrawsOfBlock == 0;
    const bool vectors = IsAligned(Data<T>(x)) && IsAligned(Data<T>(y)) &&
                         elems % kVector == 0 && whole_blocks;
    const int at_once = vectors ? kVector : kDrawsOfBlock;
    base::LaunchShape shape = GridOf((elems + at_once - 1) / at_once);
    shape.grid.y =
        static_cast<unsigned>(std::min<std::int64_t>(samples, kGridYMax));
    return base::Launch(
        "Dropout", vectors ? DropVectorsKernel<kVector, T> : DropKernel<T>,
        shape, cuda.stream, samples, elems, drop, Data<T>(x), Data<T>(y));
  }
};

}  // namespace

template <>
void BindFamily(DropoutKernels& ops, CudaOps* state) {
  BindFloating<Dropout>(ops.Dropout, state);
}

}  // namespace troupe::nn::cuda
