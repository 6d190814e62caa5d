#include "nn/kernels/binary.h"

#include "nn/kernels/cpu/outer_loops.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

// Returns the last two axes of the loops, or fewer if there are fewer.
BinaryShape InnerShape(const StridedLoops& loops) {
  BinaryShape shape{/*rows=*/1, /*cols=*/1, 0, 0, false, false};
  const int last = loops.rank - 1;
  if (last >= 0) {
    shape.cols = loops.extent[last];
    shape.one_a = loops.a[last] == 0;
    shape.one_b = loops.b[last] == 0;
  }
  if (last >= 1) {
    shape.rows = loops.extent[last - 1];
    shape.a_row = loops.a[last - 1];
    shape.b_row = loops.b[last - 1];
  }
  return shape;
}

absl::Status Binary(CpuDevice& cpu, BinaryFunction f, In a, In b, Tensor& y) {
  const StridedLoops loops = BroadcastLoops(y.shape(), a.shape(), b.shape());
  const BinaryShape inner = InnerShape(loops);
  const float* left = a.data<float>();
  const float* right = b.data<float>();
  float* out = y.data<float>();
  ForEachOuter(loops, /*inner=*/2, [&](std::int64_t at_a, std::int64_t at_b) {
    cpu.loops().binary(f, inner, left + at_a, right + at_b, out);
    out += inner.rows * inner.cols;
  });
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, BinaryKernels& ops) {
  BindF32<Binary>(cpu, ops.Binary);
}

}  // namespace troupe::nn::cpu
