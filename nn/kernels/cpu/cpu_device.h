// What the cpu kernels share: the loops of the chosen instruction set, oneDNN,
// and memory. A kernel is a function that gets it first:
//
//   absl::Status ReluForward(CpuDevice& cpu, In x, Tensor& y) {
//     cpu.loops().relu_forward(x.numel(), x.data<float>(), y.data<float>());
//     return absl::OkStatus();
//   }
//
// Each family of ops has a file of its name, with its kernels and a function
// that binds them to the ops of a kernel set; these functions are declared
// below. Threads: as the kernel set's.

#ifndef NN_KERNELS_CPU_CPU_DEVICE_H_
#define NN_KERNELS_CPU_CPU_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "nn/kernels/cpu/bf16_loops.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/onednn.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::nn::cpu {

class CpuDevice {
 public:
  explicit CpuDevice(const CpuKernelOptions& options);

  const Loops& loops() const { return loops_; }
  CachingAllocator& allocator() { return allocator_; }
  int threads() const { return options_.threads; }
  // False where the caller asked for less than the best instructions of the
  // CPU, since oneDNN takes those.
  bool uses_onednn() const { return uses_onednn_; }
  // Null where the CPU has no such instructions, or the caller asked for less
  // than they are.
  const BF16Loops* bf16_loops() const { return bf16_loops_; }
  // Whether oneDNN multiplies tiles of bf16, which is faster than those.
  bool uses_bf16_tiles() const { return uses_bf16_tiles_; }
  // Made at the first use: a rank of small layers never pays for it.
  OneDnn& onednn();
  // At least `floats` of 64-byte aligned memory, kept between calls.
  absl::StatusOr<float*> Scratch(std::int64_t floats);
  // "avx512 with bf16 and AMX, 1 thread, oneDNN 2.6.3"
  std::string Describe() const;

 private:
  const CpuKernelOptions options_;
  const Loops& loops_;
  const BF16Loops* const bf16_loops_;
  const bool uses_onednn_;
  const bool uses_bf16_tiles_;
  CachingAllocator allocator_;
  StoragePtr scratch_;
  std::unique_ptr<OneDnn> onednn_;
};

// For an operand that may be undefined.
inline float* DataOrNull(const Tensor& t) {
  return t.defined() ? t.data<float>() : nullptr;
}

// `cpu` outlives the ops.
void BindLinear(CpuDevice& cpu, LinearKernels& ops);
void BindAttention(CpuDevice& cpu, AttentionKernels& ops);
void BindRotary(CpuDevice& cpu, RotaryKernels& ops);
void BindConv2d(CpuDevice& cpu, Conv2dKernels& ops);
void BindPool2d(CpuDevice& cpu, Pool2dKernels& ops);
void BindBatchNorm(CpuDevice& cpu, BatchNormKernels& ops);
void BindBias(CpuDevice& cpu, BiasKernels& ops);
void BindNorm(CpuDevice& cpu, NormKernels& ops);
void BindPad2d(CpuDevice& cpu, Pad2dKernels& ops);
void BindElementwise(CpuDevice& cpu, ElementwiseKernels& ops);
void BindDropout(CpuDevice& cpu, DropoutKernels& ops);
void BindEmbedding(CpuDevice& cpu, EmbeddingKernels& ops);
void BindLayout(CpuDevice& cpu, LayoutKernels& ops);
void BindLoss(CpuDevice& cpu, LossKernels& ops);
void BindOptimizer(CpuDevice& cpu, OptimizerKernels& ops);
void BindUnary(CpuDevice& cpu, UnaryKernels& ops);
void BindBinary(CpuDevice& cpu, BinaryKernels& ops);
void BindSoftmax(CpuDevice& cpu, SoftmaxKernels& ops);
void BindReduction(CpuDevice& cpu, ReductionKernels& ops);
void BindMatMul(CpuDevice& cpu, MatMulKernels& ops);
void BindStrided(CpuDevice& cpu, StridedKernels& ops);

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CPU_DEVICE_H_
