#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

std::int64_t RowsOf(const Tensor& t, const Tensor& b) {
  return b.numel() == 0 ? 0 : t.numel() / b.numel();
}

absl::Status BiasForward(CpuDevice& cpu, In b, Tensor& y) {
  cpu.loops().add_to_rows(RowsOf(y, b), b.numel(), b.data<float>(),
                          y.data<float>());
  return absl::OkStatus();
}

absl::Status BiasBackward(CpuDevice& cpu, In dy, bool accumulate, Tensor& db) {
  cpu.loops().column_sums(RowsOf(dy, db), db.numel(), dy.data<float>(),
                          accumulate, db.data<float>());
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, BiasKernels& ops) {
  BindF32<BiasForward>(cpu, ops.BiasForward);
  BindF32<BiasBackward>(cpu, ops.BiasBackward);
}

}  // namespace troupe::nn::cpu
