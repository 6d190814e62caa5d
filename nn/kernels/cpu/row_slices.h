// Kernels that take the rows of their operands each by itself, on tensors of 16
// bits: as f32, a block of rows after the other, so that the copies stay in the
// nearest caches.
//
//   return ForEachRowSlice(cpu, {y.numel()}, {&y, &dy}, {&dx},
//                          [&](const RowSlice& at) {
//     cpu.loops().relu_backward(at.rows, at.in[0], at.in[1], at.out[0]);
//   });
//   BindByRows<ReluBackward>(cpu, ops.ReluBackward);
//
// Operands of f32 are passed on as they lie, all rows at once unless asked
// otherwise.

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
  // Those rows of each operand; null where it is undefined.
  std::array<float*, 3> in = {}, out = {};
};

struct RowsToCut {
  std::int64_t rows;
  std::int64_t together = 1;  // slices begin at multiples of this
  // f32 too comes in slices: for a kernel of several passes over each.
  bool cuts_f32 = false;
};

// The operands of one call: at most three that are read and three written.
class RowSlices {
 public:
  RowSlices(CpuDevice& cpu, const RowsToCut& cut,
            std::initializer_list<const Tensor*> in,
            std::initializer_list<const Tensor*> out);

  // Memory for copies, if there will be any.
  absl::Status Prepare();
  // False: there are no more rows.
  bool Next(RowSlice& slice);
  // Result `i` of the slice is from here on what its dtype can hold.
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

// `t` where it is undefined or f32, or else a copy.
absl::StatusOr<Tensor> AsF32(CpuDevice& cpu, const Tensor& t);

// Binds a kernel that looks at the dtypes of its operands through the above.
// `kF64Kernel`, if there is one, is called where they are f64.
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
