#include "nn/kernels/strided.h"

#include <cstring>

#include "nn/kernels/reference/offsets.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

// Copies elements of any dtype, as bytes.
template <typename ThisOp>
absl::Status CopyStrided(const ThisOp&, StridedLoops loops, FixedIn x,
                         FixedOut y) {
  const std::size_t size = SizeOf(x.tensor.dtype());
  const char* from = static_cast<const char*>(x.tensor.raw());
  char* to = static_cast<char*>(y.tensor.raw());
  for (std::int64_t i = 0; i < loops.numel(); ++i) {
    const Offsets at = OffsetsOf(loops, i);
    std::memcpy(to + at.b * size, from + at.a * size, size);
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(StridedKernels& ops) {
  ops.CopyStrided.BindFunction(CopyStrided, nullptr);
}

}  // namespace troupe::nn::reference
