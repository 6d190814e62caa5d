// Calls for which oneDNN is faster than the loops here: convolutions of many
// channels, input gradients of weights too large for the cache, and products on
// several threads. A fixed rule of the shape decides (docs/cpu_kernels.md has
// the measurements).
//
//   OneDnn onednn(/*threads=*/1, allocator);
//   if (OneDnn::WantsConv(OneDnn::Way::kForward, shape)) {
//     return onednn.Conv(OneDnn::Way::kForward, shape, x, w, y);
//   }
//
// Primitives are made at the first call with a shape and kept with their
// argument maps. Weights are in plain layout and are reordered in each call.
// Errors of oneDNN become kInternal, naming the op and its shape.

#ifndef NN_KERNELS_CPU_ONEDNN_H_
#define NN_KERNELS_CPU_ONEDNN_H_

#include <cstdint>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cpu {

class OneDnn {
 public:
  enum class Way { kForward, kBackwardInput, kBackwardWeight };

  OneDnn(int threads, Allocator& allocator);
  ~OneDnn();
  OneDnn(const OneDnn&) = delete;
  OneDnn& operator=(const OneDnn&) = delete;

  // "oneDNN 2.6.3"
  static const char* Version();

  static bool WantsLinear(Way way, int threads, std::int64_t n, std::int64_t k,
                          std::int64_t m);
  static bool WantsConv(Way way, const ImageShape& shape);
  // The same for images of bf16, on a CPU that multiplies bf16.
  static bool WantsBF16Conv(Way way, const ImageShape& shape);

  // Starts oneDNN's code generation in a thread, once in a process: the first
  // product of a process would wait 20 to 60 ms for it. The destructor waits
  // for the thread.
  void PrepareLinear();

  // y (+)= x w^T;  dx (+)= dy w;  dw (+)= dy^T x: shapes as in kernels.h. The
  // operands are in the order of the Kernels method, the result last.
  absl::Status Linear(Way way, std::int64_t n, std::int64_t k, std::int64_t m,
                      const float* a, const float* b, bool accumulate,
                      float* result);

  // The same on the bits of bf16, by tiles if the CPU has them, with sums in
  // f32. The result is bf16, or f32 if `wide`; `bias` is that of a forward
  // pass, or null.
  absl::Status Linear(Way way, std::int64_t n, std::int64_t k, std::int64_t m,
                      const std::uint16_t* a, const std::uint16_t* b,
                      const std::uint16_t* bias, bool accumulate, bool wide,
                      void* result);

  // Computes without bias, and overwrites the result; operands as above.
  absl::Status Conv(Way way, const ImageShape& shape, const float* a,
                    const float* b, float* result);
  // The same on the bits of bf16, with sums in f32. `bias` is that of a forward
  // pass, or null.
  absl::Status Conv(Way way, const ImageShape& shape, const std::uint16_t* a,
                    const std::uint16_t* b, const std::uint16_t* bias,
                    std::uint16_t* result);
  // Computes dw of bf16 images, in f32.
  absl::Status ConvBackwardWeight(const ImageShape& shape,
                                  const std::uint16_t* x,
                                  const std::uint16_t* dy, float* dw);

 private:
  class Impl;
  struct ConvCall;
  struct LinearCall;

  absl::Status Run(const ImageShape& shape, const ConvCall& call);

  const int threads_;
  Allocator& allocator_;
  // Engine, stream and primitives; made by the first Conv() or Linear(), which
  // returns the errors that they throw.
  std::unique_ptr<Impl> impl_;
  std::thread preparation_;
};

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_ONEDNN_H_
