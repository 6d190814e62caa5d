// bf16 and f16 are storage types here: a call on such tensors runs on f32
// copies, and what it wrote is rounded once on the way back.
//
//   Widened wide(*this, allocator_);
//   Tensor wide_y = wide.Out(y);
//   status = ReluForward(wide.In(x), wide_y);
//   return wide.Finish(status);
//
// Cost: two conversions and an f32 copy of every operand, from the cache.

#ifndef NN_KERNELS_CPU_WIDENED_H_
#define NN_KERNELS_CPU_WIDENED_H_

#include <array>

#include "absl/status/status.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::cpu {

// True where a tensor must be widened before f32 loops may read it.
inline bool IsNarrow(const Tensor& t) {
  return t.dtype() == DType::kBF16 || t.dtype() == DType::kF16;
}

class Widened {
 public:
  Widened(Kernels& kernels, CachingAllocator& allocator)
      : kernels_(kernels), allocator_(allocator) {}

  // An f32 copy; `t` itself where it is undefined or not narrow.
  Tensor In(const Tensor& t);
  // Memory for a result, copied back by Finish(). With `read` the present
  // contents come along.
  Tensor Out(Tensor& t, bool read = false);
  // Writes the results back unless `status` or a conversion failed.
  absl::Status Finish(absl::Status status);

 private:
  struct Result {
    Tensor wide;
    Tensor* narrow;
  };

  Kernels& kernels_;
  CachingAllocator& allocator_;
  absl::Status status_;
  std::array<Result, 4> results_;
  int count_ = 0;
};

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_WIDENED_H_
