#include "nn/kernels/strided.h"

#include <algorithm>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/strided_offsets.h"
#include "nn/kernels/cuda/kernel_parts/transpose.h"

namespace troupe::nn::cuda {
namespace {

// A vector never crosses runs of the last axis, along which the elements of
// both operands are adjacent.
template <typename Word>
struct StridedCopyBody {
  DeviceLoops loops;
  const Word* x;
  Word* y;

  template <int kCount>
  __device__ void At(std::int64_t i) const {
    const Offsets at = OffsetsOf(loops, i);
    StorePack(LoadPack<kCount>(x + at.a), y + at.b);
  }
};

bool IsMultiple(std::int64_t n, int vector) { return n % vector == 0; }

// Returns whether every run of the last axis has adjacent elements and begins
// at a multiple of the vector in both operands.
bool RunsAreAligned(const StridedLoops& loops, int vector) {
  if (!RunsHoldVectors(loops, vector)) return false;
  const int last = loops.rank - 1;
  bool aligned = loops.a[last] == 1 && loops.b[last] == 1 &&
                 IsMultiple(loops.a_begin, vector) &&
                 IsMultiple(loops.b_begin, vector);
  for (int axis = 0; axis < last; ++axis) {
    aligned = aligned && IsMultiple(loops.a[axis], vector) &&
              IsMultiple(loops.b[axis], vector);
  }
  return aligned;
}

// Returns whether the loops transpose matrices that are consecutive in both
// operands: y[batch, C, R] from x[batch, R, C].
bool IsBatchOfTransposes(const StridedLoops& loops) {
  const int c = loops.rank - 2, r = loops.rank - 1;
  if (loops.rank < 2 || loops.rank > 3) return false;
  const std::int64_t C = loops.extent[c], R = loops.extent[r];
  const bool matrices =
      loops.a[c] == 1 && loops.a[r] == C && loops.b[c] == R && loops.b[r] == 1;
  return matrices &&
         (loops.rank == 2 || (loops.a[0] == R * C && loops.b[0] == R * C));
}

// Copies elements as words of their size.
template <typename Word>
absl::Status CopyWords(const CudaOps& cuda, const StridedLoops& loops,
                       const Tensor& x, const Tensor& y) {
  const auto* from = static_cast<const Word*>(x.device_data());
  auto* to = static_cast<Word*>(y.device_data());
  if (IsBatchOfTransposes(loops)) {
    const int c = loops.rank - 2, r = loops.rank - 1;
    const std::int64_t batch = loops.rank == 3 ? loops.extent[0] : 1;
    return TransposeBatch<KeepWord>("CopyStrided.Transpose", cuda.stream, batch,
                                    loops.extent[r], loops.extent[c],
                                    from + loops.a_begin, to + loops.b_begin);
  }
  constexpr int kVector = kVectorOf<Word>;
  const StridedCopyBody<Word> body{ForDevice(loops), from, to};
  return ForEachElement<kVector>(
      "CopyStrided", cuda.stream, loops.numel(),
      RunsAreAligned(loops, kVector) && IsAligned(from) && IsAligned(to), body);
}

absl::Status CopyStrided(const CudaOps& cuda, StridedLoops loops, In x,
                         Tensor& y) {
  if (loops.numel() == 0) return absl::OkStatus();
  switch (SizeOf(x.dtype())) {
    case 1:
      return CopyWords<std::uint8_t>(cuda, loops, x, y);
    case 2:
      return CopyWords<std::uint16_t>(cuda, loops, x, y);
    case 4:
      return CopyWords<std::uint32_t>(cuda, loops, x, y);
    default:
      return CopyWords<std::uint64_t>(cuda, loops, x, y);
  }
}

}  // namespace

template <>
void BindFamily(StridedKernels& ops, CudaOps* state) {
  ops.CopyStrided.Bind<CopyStrided>(state);
}

}  // namespace troupe::nn::cuda
