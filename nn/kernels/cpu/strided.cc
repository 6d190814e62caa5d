#include "nn/kernels/strided.h"

#include <algorithm>
#include <cstring>

#include "nn/kernels/cpu/cpu_device.h"
#include "nn/kernels/cpu/outer_loops.h"

namespace troupe::nn::cpu {
namespace {

// Copies runs of elements that are contiguous in both operands.
void CopyRuns(const StridedLoops& loops, std::size_t size, const char* x,
              char* y) {
  const std::size_t bytes =
      (loops.rank > 0 ? loops.extent[loops.rank - 1] : 1) * size;
  ForEachOuter(loops, /*inner=*/1, [&](std::int64_t a, std::int64_t b) {
    std::memcpy(y + b * size, x + a * size, bytes);
  });
}

// Returns the axis along which x is contiguous, or -1.
int RunOfX(const StridedLoops& loops) {
  for (int axis = loops.rank - 2; axis >= 0; --axis) {
    if (loops.a[axis] == 1) return axis;
  }
  return -1;
}

// Returns the loops with axis `axis` as the last but one.
StridedLoops MovedToLastButOne(StridedLoops loops, int axis) {
  for (Strides* each : {&loops.extent, &loops.a, &loops.b}) {
    std::rotate(each->begin() + axis, each->begin() + axis + 1,
                each->begin() + loops.rank - 1);
  }
  return loops;
}

// For y contiguous along the last axis, x along another.
void TransposeF32(const Loops& kernels, const StridedLoops& given, int axis,
                  const float* x, float* y) {
  const StridedLoops loops = MovedToLastButOne(given, axis);
  const int cols = loops.rank - 2, rows = loops.rank - 1;
  ForEachOuter(loops, /*inner=*/2, [&](std::int64_t a, std::int64_t b) {
    kernels.transpose_strided(loops.extent[rows], loops.extent[cols], x + a,
                              loops.a[rows], y + b, loops.b[cols]);
  });
}

template <typename Word>
void CopyWords(const StridedLoops& loops, const Word* x, Word* y) {
  const int last = loops.rank - 1;
  const std::int64_t n = loops.extent[last];
  const std::int64_t x_step = loops.a[last], y_step = loops.b[last];
  ForEachOuter(loops, /*inner=*/1, [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t i = 0; i < n; ++i) y[b + i * y_step] = x[a + i * x_step];
  });
}

template <typename Word>
void CopyWords(const StridedLoops& loops, const Tensor& x, const Tensor& y) {
  CopyWords(loops, static_cast<const Word*>(x.raw()),
            static_cast<Word*>(y.raw()));
}

absl::Status CopyStrided(CpuDevice& cpu, StridedLoops loops, In x, Tensor& y) {
  if (loops.numel() == 0) return absl::OkStatus();
  const std::size_t size = SizeOf(x.dtype());
  const int last = loops.rank - 1;
  if (last < 0 || (loops.a[last] == 1 && loops.b[last] == 1)) {
    CopyRuns(loops, size, static_cast<const char*>(x.raw()),
             static_cast<char*>(y.raw()));
    return absl::OkStatus();
  }
  const int run_of_x = RunOfX(loops);
  if (size == 4 && loops.b[last] == 1 && run_of_x >= 0) {
    TransposeF32(cpu.loops(), loops, run_of_x,
                 static_cast<const float*>(x.raw()),
                 static_cast<float*>(y.raw()));
    return absl::OkStatus();
  }
  switch (size) {
    case 1:
      CopyWords<std::uint8_t>(loops, x, y);
      break;
    case 2:
      CopyWords<std::uint16_t>(loops, x, y);
      break;
    case 4:
      CopyWords<std::uint32_t>(loops, x, y);
      break;
    default:
      CopyWords<std::uint64_t>(loops, x, y);
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, StridedKernels& ops) {
  ops.CopyStrided.Bind<CopyStrided>(&cpu);
}

}  // namespace troupe::nn::cpu
