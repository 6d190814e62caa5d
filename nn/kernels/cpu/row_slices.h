// Runs kernels that process rows independently on tensors of 16 bits: a block
// of rows at a time is converted to f32, so that the copies stay in the nearest
// caches.
//
//   return ForEachRowSlice(cpu, {y.numel()}, {&y, &dy}, {&dx},
//                          [&](const RowSlice& at) {
//     cpu.loops().relu_backward(at.rows, at.in[0], at.in[1], at.out[0]);
//   });
//   BindByRows<ReluBackward>(cpu, ops.ReluBackward);
//
// Operands of f32 are passed in place, all rows at once unless cuts_f32 is set.

#ifndef NN_KERNELS_CPU_ROW_SLICES_H_
#define NN_KERNELS_CPU_ROW_SLICES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "nn/kernels/cpu/cpu_device.h"
#include "nn/kernels/cpu/widening.h"
#include "nn/kernels/op.h"

namespace troupe::nn::cpu {

// Rows [first, first + rows).
struct RowSlice {
  std::int64_t first = 0, rows = 0;
  // Data of these rows in each operand; null if it is undefined.
  std::array<float*, 3> in = {}, out = {};
};

struct RowsToCut {
  std::int64_t rows;
  std::int64_t together = 1;  // slices begin at multiples of this
  // Whether f32 operands are sliced too: for a kernel with several passes over
  // each slice.
  bool cuts_f32 = false;
};

// The operands of one call: at most three that are read and three written.
class RowSlices {
 public:
  RowSlices(CpuDevice& cpu, const RowsToCut& cut,
            std::initializer_list<const Tensor*> in,
            std::initializer_list<const Tensor*> out);

  // Allocates memory for copies, if any are needed.
  absl::Status Prepare();
  // Returns false if there are no more rows.
  bool Next(RowSlice& slice);
  // Rounds result `i` of the slice to its dtype.
  void Round(const RowSlice& slice, int i);

 private:
  struct Operand {
    const Tensor* tensor = nullptr;
    std::int64_t cols = 0;
    bool written = false;
    bool narrow = false;
    float* copy = nullptr;
  };

  float* At(const Operand& operand, const RowSlice& slice);
  void Convert(const Operand& operand, const RowSlice& slice, bool widens);

  CpuDevice& cpu_;
  const RowsToCut cut_;
  std::int64_t rows_at_once_ = 0;
  std::array<Operand, 6> operands_;
  Tensor copies_;
};

template <typename Body>
absl::Status ForEachRowSlice(CpuDevice& cpu, const RowsToCut& cut,
                             std::initializer_list<const Tensor*> in,
                             std::initializer_list<const Tensor*> out,
                             Body body) {
  RowSlices slices(cpu, cut, in, out);
  TROUPE_RETURN_IF_ERROR(slices.Prepare());
  RowSlice slice;
  while (slices.Next(slice)) body(slice);
  return absl::OkStatus();
}

// Returns `t` itself if it is undefined or f32, or else a copy.
absl::StatusOr<Tensor> AsF32(CpuDevice& cpu, const Tensor& t);

// Binds a kernel that handles the dtypes of its operands by row slices.
// `kF64Kernel`, if given, is called if they are f64.
template <auto kKernel, auto kF64Kernel = nullptr, typename... Args>
void BindByRows(CpuDevice& cpu, Op<absl::Status(Args...)>& op) {
  using ThisOp = Op<absl::Status(Args...)>;
  op.BindFunction(
      [](const ThisOp& op, Args... args) -> absl::Status {
        CpuDevice& cpu = op.template state<CpuDevice>();
        const DType refused = RefusedDType({NumbersOf(args)...});
        if (refused == DType::kF32) return kKernel(cpu, args...);
        if constexpr (kF64Kernel != nullptr) {
          if (DTypeOfNumbers(args...) == DType::kF64) {
            return kF64Kernel(cpu, args...);
          }
        }
        return DoesNotCompute(op.name(), refused, op.device());
      },
      &cpu);
}

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_ROW_SLICES_H_
