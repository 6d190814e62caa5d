// State that the cpu kernels share: the loops of the chosen instruction set,
// oneDNN, and memory. A kernel is a function that takes it first:
//
//   absl::Status ReluForward(CpuDevice& cpu, In x, Tensor& y) {
//     cpu.loops().relu_forward(x.numel(), x.data<float>(), y.data<float>());
//     return absl::OkStatus();
//   }
//
// Each family of ops has a file of its name, with its kernels and the
// specialization of BindFamily() that binds them. Threads: the same as for the
// kernel set.

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
  // False if the options ask for less than the best instructions of the CPU,
  // since oneDNN uses those.
  bool uses_onednn() const { return uses_onednn_; }
  // Null if the CPU lacks the instructions, or the options do not allow them.
  const BF16Loops* bf16_loops() const { return bf16_loops_; }
  // Whether oneDNN multiplies tiles of bf16, which is faster than bf16_loops().
  bool uses_bf16_tiles() const { return uses_bf16_tiles_; }
  // Created at the first use: a rank of small layers never pays for it.
  OneDnn& onednn();
  // Returns at least `floats` of 64-byte aligned memory, kept between calls.
  absl::StatusOr<float*> Scratch(std::int64_t floats);
  // Returns "avx512 with bf16 and AMX, 1 thread, oneDNN 2.6.3", say.
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

// Returns null for an undefined operand.
inline float* DataOrNull(const Tensor& t) {
  return t.defined() ? t.data<float>() : nullptr;
}

// Binds the kernels of a family to its ops. The family's file specializes it.
// `cpu` outlives the ops.
template <typename Family>
void BindFamily(CpuDevice& cpu, Family& ops);

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CPU_DEVICE_H_
